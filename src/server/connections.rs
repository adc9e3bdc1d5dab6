//! Accepts connections and answers the requests on them, until the server is to stop.

use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How often the server checks whether it is to stop.
const POLL: Duration = Duration::from_millis(50);

/// How long requests that are being answered may take once the server stops.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// Answers requests until `is_stopped` returns true, and then those that are being answered, for up to five seconds. A
/// connection on which no complete head of a request arrives within `head_timeout` is closed: each one takes memory and
/// a file descriptor.
pub(super) async fn serve(
    listener: &TcpListener,
    app: &Router,
    head_timeout: Duration,
    is_stopped: impl Fn() -> bool,
) {
    let (mut connections, stop) = (JoinSet::new(), watch::Sender::new(false));
    while !is_stopped() {
        match timeout(POLL, listener.accept()).await {
            Ok(Ok((stream, _))) => {
                connections.spawn(connection(stream, app.clone(), head_timeout, stop.subscribe()));
            }
            // The client left, or there are too many connections.
            Ok(Err(_)) => sleep(POLL).await,
            Err(_) => {}
        }
        while connections.try_join_next().is_some() {}
    }
    stop.send_replace(true);
    // Whatever is still being answered then is abandoned.
    let _ = timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
}

/// Answers the requests on a connection until it is closed; once `stop` is true, only the one that is being answered.
async fn connection(stream: TcpStream, app: Router, head_timeout: Duration, mut stop: watch::Receiver<bool>) {
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(head_timeout);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    // An error means that the server does not exist any more.
    let stop = async move { drop(stop.wait_for(|stop| *stop).await) };
    let (mut connection, mut stop) = (pin!(connection), pin!(stop));
    let mut is_stopping = false;
    poll_fn(|context| {
        if !is_stopping && stop.as_mut().poll(context).is_ready() {
            is_stopping = true;
            connection.as_mut().graceful_shutdown();
        }
        // An error is one of the client, which gets no response then.
        connection.as_mut().poll(context).map(drop)
    })
    .await;
}
