package main

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// What linkerd's validator exits with where connections are not redirected: EOPNOTSUPP.
const notRedirected = 95

// validate listens where linkerd's proxy does and connects elsewhere: where connections are redirected, it finds
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
