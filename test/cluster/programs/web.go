package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// The header by which linkerd's proxy tells an application who its client is.
const clientHeader = "l5d-client-id"

// answered is what came of a request.
type answered struct {
	Status int `json:"status"`
	// The client's identity, if the application was told one.
	Client string `json:"client"`
}

// web serves HTTP on each port, and returns the client's identity to it.
func web(ports []string) error {
	echo := func(writer http.ResponseWriter, request *http.Request) {
		writer.Header().Set(clientHeader, request.Header.Get(clientHeader))
	}
	failed := make(chan error)
	for _, port := range ports {
		go func() { failed <- http.ListenAndServe(":"+port, http.HandlerFunc(echo)) }()
	}
	return <-failed
}

// get prints the answer of each URL, one per line. It fails if a URL does not answer.
func get(urls []string) error {
	var failures []error
	for _, url := range urls {
		response, err := http.Get(url)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		response.Body.Close()
		text, _ := json.Marshal(answered{response.StatusCode, response.Header.Get(clientHeader)})
		fmt.Println(string(text))
	}
	return errors.Join(failures...)
}
