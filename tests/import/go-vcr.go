// Records requests to a server of models with go-vcr 3: go run go-vcr.go URL CASSETTE
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"gopkg.in/dnaeon/go-vcr.v3/recorder"
)

const key = "sk-not-a-key-0123456789"

var bodies = []string{
	`{"model":"m-1","messages":[{"role":"user","content":"hello ä: \"yes\"\n1e5"}],"temperature":0,"n":1}`,
	`{"model":"m-1","messages":[{"role":"user","content":"hello"}],"stream":true}`,
	`{"model":"m-1","messages":[{"role":"user","content":"fail"}]}`,
}

func ask(client *http.Client, method, url, body string, headers map[string]string) error {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func run(url, cassette string) error {
	recording, err := recorder.New(cassette)
	if err != nil {
		return err
	}
	client := recording.GetDefaultClient()
	chat := url + "/v1/chat/completions"
	for _, body := range bodies {
		if err := ask(client, "POST", chat, body, nil); err != nil {
			return err
		}
	}
	// With this header, the program gets what was sent.
	compressed := map[string]string{"Accept-Encoding": "gzip", "X-Test": "gzip"}
	if err := ask(client, "POST", chat, bodies[0], compressed); err != nil {
		return err
	}
	if err := ask(client, "GET", url+"/v1/models", "", nil); err != nil {
		return err
	}
	return recording.Stop()
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
