package main

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// The exit code of linkerd's validator if connections are not redirected: EOPNOTSUPP.
const notRedirected = 95

// validate listens on the port of linkerd's proxy and connects elsewhere: if connections are redirected, it reaches
// itself.
func validate(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: programs validate ADDRESS")
	}
	token := fmt.Sprintf("validator %d", os.Getpid())
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{Port: 4140})
	if err != nil {
		return err
	}
	go accept(listener, func(*net.TCPConn) string { return token })
	answer, err := ask(args[0])
	if err == nil && strings.TrimSpace(answer) == token {
		return nil
	}
	fmt.Fprintf(os.Stderr, "%s is not redirected: %q, %v\n", args[0], answer, err)
	os.Exit(notRedirected)
	return nil
}
