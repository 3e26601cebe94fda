package main

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"os"
)

// inject answers each admission review with the JSON patch in PATCH, as an injector's webhook does.
func inject(_ []string) error {
	certificate, err := tls.X509KeyPair([]byte(os.Getenv("TLS_CRT")), []byte(os.Getenv("TLS_KEY")))
	if err != nil {
		return err
	}
	answer := func(writer http.ResponseWriter, request *http.Request) {
		var review struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Request    struct {
				UID string `json:"uid"`
			} `json:"request"`
		}
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		writer.Header().Set("content-type", "application/json")
		json.NewEncoder(writer).Encode(map[string]any{
			"apiVersion": review.APIVersion,
			"kind":       review.Kind,
			"response": map[string]any{
				"uid":       review.Request.UID,
				"allowed":   true,
				"patchType": "JSONPatch",
				"patch":     []byte(os.Getenv("PATCH")),
			},
		})
	}
	server := http.Server{
		Addr:      ":8443",
		Handler:   http.HandlerFunc(answer),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
	}
	return server.ListenAndServeTLS("", "")
}
