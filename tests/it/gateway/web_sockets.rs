//! Responses over web sockets, each of which is a call.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use runvault::gateway::{Gateway, GatewayMode};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use super::client::request;
use super::scripted::{options, response, server};
use super::started;
use crate::sandbox::Sandbox;

/// A server that answers over sockets, with the number of connections so far.
struct SocketServer {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl SocketServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&connections);
        thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || serve(stream.unwrap()));
            }
        });
        Self { address, connections }
    }
}

/// Answers each request in three events; after "break off" it leaves with the answer incomplete.
fn serve(stream: TcpStream) {
    let Ok(mut socket) = tungstenite::accept(stream) else { return };
    let mut number = 0;
    while let Ok(message) = socket.read() {
        let Message::Text(text) = message else { continue };
        let event: Value = serde_json::from_str(&text).unwrap();
        if event.get("setup").is_some() || event.get("clientContent").is_some() {
            // Gemini sends all messages as data.
            for message in gemini(&event) {
                socket.send(Message::binary(message.to_string().into_bytes())).unwrap();
            }
            continue;
        }
        if event["type"] != "response.create" {
            socket.send(Message::text(json!({"type": "seen", "event": event["type"]}).to_string())).unwrap();
            continue;
        }
        number += 1;
        let asked = event["input"].as_str().unwrap();
        let said = format!("answer {number} to {asked}");
        let id = format!("resp-{number}");
        let created = json!({"type": "response.created", "response": {"id": id}});
        let delta = json!({"type": "response.output_text.delta", "output_index": 0, "delta": said});
        let text = json!([{"type": "output_text", "text": said}]);
        let item = json!([{"type": "message", "id": "i", "role": "assistant", "content": text}]);
        let usage = json!({"input_tokens": 3, "output_tokens": 5});
        let completed =
            json!({"id": id, "object": "response", "status": "completed", "output": item, "usage": usage});
        let completed = json!({"type": "response.completed", "response": completed});
        for event in [created, delta] {
            socket.send(Message::text(event.to_string())).unwrap();
        }
        if asked == "break off" {
            return;
        }
        socket.send(Message::text(completed.to_string())).unwrap();
    }
}

/// What Gemini answers to a message.
fn gemini(event: &Value) -> Vec<Value> {
    if event.get("setup").is_some() {
        return vec![json!({"setupComplete": {}})];
    }
    let part = |text: &str| json!({"serverContent": {"modelTurn": {"parts": [{"text": text}]}}});
    let asked = event["clientContent"]["turns"][0]["parts"][0]["text"].as_str().unwrap();
    vec![part("You asked: "), part(asked), json!({"serverContent": {"turnComplete": true}})]
}

/// Opens a socket at a path of a gateway. The error is the status of the response.
fn open(gateway: &Gateway, path: &str) -> Result<WebSocket<TcpStream>, u16> {
    let address = gateway.address();
    let request = tungstenite::http::Request::builder()
        .uri(format!("ws://{address}{path}"))
        .header("host", address.to_string())
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", generate_key())
        .header("authorization", "Bearer sk-secret")
        .body(())
        .unwrap();
    match tungstenite::client(request, TcpStream::connect(address).unwrap()) {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
            Err(response.status().as_u16())
        }
        Err(error) => panic!("{error}"),
    }
}

const PATH: &str = "/openai/v1/responses";

/// Sends a request, and returns the events up to the one that ends the answer.
fn ask(socket: &mut WebSocket<TcpStream>, input: &str, previous: Option<&str>) -> Vec<String> {
    let mut event = json!({"type": "response.create", "model": "m-1", "input": input, "store": false});
    if let Some(previous) = previous {
        event["previous_response_id"] = json!(previous);
    }
    socket.send(Message::text(event.to_string())).unwrap();
    let mut events = Vec::new();
    loop {
        let Ok(Message::Text(text)) = socket.read() else { return events };
        let event: Value = serde_json::from_str(&text).unwrap();
        events.push(text.to_string());
        if ["response.completed", "error"].contains(&event["type"].as_str().unwrap()) {
            return events;
        }
    }
}

fn start(sandbox: &Sandbox, mode: GatewayMode, server: SocketAddr) -> Gateway {
    started(sandbox, options(sandbox, mode, server)).unwrap()
}

#[test]
fn each_response_over_a_socket_is_a_call_that_is_replayed_over_one() {
    let (sandbox, server) = (Sandbox::without_vault(), SocketServer::start());
    let recording = start(&sandbox, GatewayMode::Record, server.address);
    let mut socket = open(&recording, PATH).unwrap();
    let first = ask(&mut socket, "one", None);
    // Other messages are passed on, and are no calls.
    socket.send(Message::text(r#"{"type":"response.cancel"}"#)).unwrap();
    assert_eq!(socket.read().unwrap().to_text().unwrap(), r#"{"event":"response.cancel","type":"seen"}"#);
    let second = ask(&mut socket, "two", Some("resp-1"));
    assert!(first.len() == 3 && second[1].contains("answer 2 to two"), "{second:?}");
    socket.close(None).unwrap();
    let run = recording.stop().unwrap().remove(0);
    assert_eq!((run.calls, run.failed, run.sessions.len()), (2, 0, 1));
    let view = sandbox.run(["view", "latest"]).expect(0);
    for line in
        ["user       one", "assistant  answer 1 to one", "user       two", "assistant  answer 2 to two"]
    {
        assert_eq!(view.stdout.matches(line).count(), 1, "{line}\n{}", view.stdout);
    }
    assert!(
        view.stdout.contains("0 m-1 openai responses") && !view.stdout.contains("thread 1"),
        "{}",
        view.stdout
    );
    let shown = sandbox.run(["show", &run.run_pack.to_string()]).expect(0).stdout;
    assert!(shown.contains("tokens_input") && !shown.contains("sk-secret"), "{shown}");

    let connections = server.connections.load(Ordering::SeqCst);
    let replaying = start(&sandbox, GatewayMode::Replay, server.address);
    let mut socket = open(&replaying, PATH).unwrap();
    assert_eq!(ask(&mut socket, "one", None), first);
    assert_eq!(ask(&mut socket, "two", Some("resp-1")), second);
    let missed = ask(&mut socket, "three", None);
    let [missed] = &missed[..] else { panic!("{missed:?}") };
    let missed: Value = serde_json::from_str(missed).unwrap();
    let message = missed["error"]["message"].as_str().unwrap();
    assert!(missed["type"] == "error" && message.contains("requested \"three\""), "{missed}");
    let replayed = replaying.replayed(None).unwrap();
    assert_eq!((replayed.replayed, replayed.missed), (2, 1));
    replaying.stop().unwrap();
    assert_eq!(server.connections.load(Ordering::SeqCst), connections);

    // The same request over HTTP has the same answer.
    let replaying = start(&sandbox, GatewayMode::Replay, server.address);
    let body = json!({"model": "m-1", "input": "one", "stream": true}).to_string();
    let answer = request(replaying.address(), &format!("POST {PATH}"), &[], &body).expect(200);
    let data: Vec<&str> = answer.body.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(data, first);
    replaying.stop().unwrap();
}

#[test]
fn what_was_recorded_is_answered_also_where_the_rest_is_forwarded() {
    let (sandbox, server) = (Sandbox::without_vault(), SocketServer::start());
    let gateway = start(&sandbox, GatewayMode::Record, server.address);
    let first = ask(&mut open(&gateway, PATH).unwrap(), "one", None);
    gateway.stop().unwrap();
    let gateway = start(&sandbox, GatewayMode::Auto, server.address);
    let mut socket = open(&gateway, PATH).unwrap();
    assert_eq!(ask(&mut socket, "one", None), first);
    // It is the first that the server gets.
    assert!(ask(&mut socket, "two", None)[1].contains("answer 1 to two"));
    let replayed = gateway.replayed(None).unwrap().replayed;
    assert_eq!((replayed, gateway.stop().unwrap()[0].calls), (1, 1));

    // Without its server, what was recorded is answered.
    let nowhere = "127.0.0.1:9".parse().unwrap();
    let gateway = start(&sandbox, GatewayMode::Auto, nowhere);
    let mut socket = open(&gateway, PATH).unwrap();
    assert_eq!(ask(&mut socket, "one", None), first);
    assert!(ask(&mut socket, "three", None)[0].contains("the server could not be asked"));
    gateway.stop().unwrap();
}

#[test]
fn an_answer_that_is_broken_off_is_a_failed_call() {
    let (sandbox, server) = (Sandbox::without_vault(), SocketServer::start());
    let gateway = start(&sandbox, GatewayMode::Record, server.address);
    let events = ask(&mut open(&gateway, PATH).unwrap(), "break off", None);
    assert_eq!(events.len(), 2, "{events:?}");
    let run = gateway.stop().unwrap().remove(0);
    assert_eq!((run.calls, run.failed), (1, 1));
    let view = sandbox.run(["view", "latest", "--raw"]).expect(0).stdout;
    assert!(view.contains("answer 1 to break off"), "{view}");
}

/// A server that refuses sockets with a status.
fn refusing(status: u16) -> SocketAddr {
    server(move |line| {
        let is_socket = line.starts_with("GET");
        // The server closes each connection, which must not be used again.
        let refused = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        vec![(0, if is_socket { refused } else { response("application/json", "{\"output\":[]}") })]
    })
}

#[test]
fn sockets_are_refused_that_are_not_of_responses_or_were_not_recorded() {
    let sandbox = Sandbox::without_vault();
    let gateway = start(&sandbox, GatewayMode::Record, refusing(401));
    for path in ["/openai/v1/audio", "/gemini/ws/other", "/unknown"] {
        assert_eq!(open(&gateway, path).unwrap_err(), 426, "{path}");
    }
    // The server decides, with what concerns the client.
    assert_eq!(open(&gateway, PATH).unwrap_err(), 401);
    gateway.stop().unwrap();
    // Servers without sockets have a status each, and the client uses HTTP at once, as when this is replayed.
    for status in [404, 405, 501, 503] {
        let gateway = start(&sandbox, GatewayMode::Record, refusing(status));
        assert_eq!(open(&gateway, PATH).unwrap_err(), 426, "{status}");
        let live = "/openai/v1/realtime?model=m-live";
        assert_eq!(open(&gateway, live).unwrap_err(), status, "it has no HTTP");
        gateway.stop().unwrap();
    }
    let gateway = start(&sandbox, GatewayMode::Record, refusing(501));
    let body = json!({"model": "m-1", "input": "one"}).to_string();
    request(gateway.address(), &format!("POST {PATH}"), &[], &body).expect(200);
    gateway.stop().unwrap();
    let gateway = start(&sandbox, GatewayMode::Replay, refusing(501));
    assert_eq!(open(&gateway, PATH).unwrap_err(), 426);
    gateway.stop().unwrap();
}

/// Sends messages over a connection, and returns the next ones of the server, as many as are expected.
fn exchange(socket: &mut WebSocket<TcpStream>, sent: &[Value], expected: usize) -> Vec<Message> {
    for message in sent {
        socket.send(Message::text(message.to_string())).unwrap();
    }
    (0..expected).map(|_| socket.read().unwrap()).collect()
}

#[test]
fn a_realtime_connection_is_replayed_as_it_was() {
    let (sandbox, server) = (Sandbox::without_vault(), SocketServer::start());
    let path = "/openai/v1/realtime?model=m-live";
    let item = |text: &str| {
        let content = json!([{"type": "input_text", "text": text}]);
        let item = json!({"type": "message", "role": "user", "content": content});
        json!({"type": "conversation.item.create", "item": item})
    };
    // The id is another one each time.
    let respond = |input: &str, id: &str| json!({"type": "response.create", "event_id": id, "input": input});
    let session = json!({"type": "session.update", "session": {"instructions": "be brief"}});
    let talk = |gateway: &Gateway, id: &str| {
        let mut socket = open(gateway, path).unwrap();
        let mut all = exchange(&mut socket, std::slice::from_ref(&session), 1);
        all.extend(exchange(&mut socket, &[item("hello"), respond("one", id)], 4));
        all.extend(exchange(&mut socket, &[respond("two", id)], 3));
        (socket, all)
    };
    let gateway = start(&sandbox, GatewayMode::Record, server.address);
    let (mut socket, recorded) = talk(&gateway, "e-1");
    socket.close(None).unwrap();
    while socket.read().is_ok() {}
    let run = gateway.stop().unwrap().remove(0);
    // The server can answer the first of two messages before the gateway has the second one.
    assert!((3..=4).contains(&run.calls) && run.failed == 0, "{run:?}");
    let view = sandbox.run(["view", "latest"]).expect(0).stdout;
    for line in
        ["m-live openai realtime", "system     be brief", "user       hello", "assistant  answer 2 to two"]
    {
        assert!(view.contains(line), "{line}\n{view}");
    }

    let connections = server.connections.load(Ordering::SeqCst);
    let gateway = start(&sandbox, GatewayMode::Replay, server.address);
    let (mut socket, replayed) = talk(&gateway, "e-2");
    assert_eq!(replayed, recorded);
    // The beginning of a request waits for the rest of it, and what differs is an error.
    let missed = exchange(&mut socket, &[item("other")], 1);
    assert!(missed[0].to_text().unwrap().contains("not recorded"), "{missed:?}");
    let counts = gateway.replayed(None).unwrap();
    assert_eq!((counts.replayed, counts.missed), (run.calls, 1));
    gateway.stop().unwrap();
    assert_eq!(server.connections.load(Ordering::SeqCst), connections);
}

#[test]
fn a_connection_of_gemini_is_replayed_as_it_was() {
    let (sandbox, server) = (Sandbox::without_vault(), SocketServer::start());
    let path =
        "/gemini/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=sk-secret";
    let talk = |gateway: &Gateway| {
        let mut socket = open(gateway, path).unwrap();
        let mut all = exchange(&mut socket, &[json!({"setup": {"model": "models/g-live"}})], 1);
        let turns = json!([{"role": "user", "parts": [{"text": "how are you?"}]}]);
        all.extend(exchange(
            &mut socket,
            &[json!({"clientContent": {"turns": turns, "turnComplete": true}})],
            3,
        ));
        socket.close(None).unwrap();
        while socket.read().is_ok() {}
        all
    };
    let gateway = start(&sandbox, GatewayMode::Record, server.address);
    let recorded = talk(&gateway);
    let run = gateway.stop().unwrap().remove(0);
    assert_eq!((run.calls, run.failed), (2, 0));
    let view = sandbox.run(["view", "latest"]).expect(0).stdout;
    for line in ["models/g-live gemini live", "user       how are you?", "assistant  You asked: how are you?"]
    {
        assert!(view.contains(line), "{line}\n{view}");
    }
    let pack = sandbox.run(["get", &run.run_pack.to_string()]).expect(0).stdout;
    assert!(!pack.contains("sk-secret"), "{pack}");
    let gateway = start(&sandbox, GatewayMode::Replay, server.address);
    let replayed = talk(&gateway);
    assert_eq!(replayed, recorded);
    assert!(replayed.iter().all(Message::is_binary));
    gateway.stop().unwrap();
}
