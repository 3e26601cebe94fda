package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"
	"time"
)

// listen answers every connection to a port with one line, which it also logs.
func listen(port int, answer func(*net.TCPConn) string) error {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{Port: port})
	if err != nil {
		return err
	}
	return accept(listener, answer)
}

// accept answers each connection, one after another.
func accept(listener *net.TCPListener, answer func(*net.TCPConn) string) error {
	for {
		connection, err := listener.AcceptTCP()
		if err != nil {
			return err
		}
		line := answer(connection)
		fmt.Println(line)
		_, _ = connection.Write([]byte(line + "\n"))
		_ = connection.Close()
	}
}

// serve acts as an application.
func serve(args []string) error {
	if len(args) != 1 {
		return errors.New("serve needs a port")
	}
	port, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	return listen(port, func(*net.TCPConn) string { return fmt.Sprintf(`{"served":%d}`, port) })
}

// dial prints the answer of each address, or its error, one per line. It fails if an address does not answer.
func dial(args []string) error {
	var failures []error
	for _, address := range args {
		answer, err := ask(address)
		fmt.Print(answer)
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

func ask(address string) (string, error) {
	connection, err := net.DialTimeout("tcp", address, 3*time.Second)
	// A running container may not listen yet.
	for end := time.Now().Add(5 * time.Second); errors.Is(err, syscall.ECONNREFUSED) && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
		connection, err = net.DialTimeout("tcp", address, 3*time.Second)
	}
	if err != nil {
		return "", err
	}
	_ = connection.SetDeadline(time.Now().Add(3 * time.Second))
	answer, err := io.ReadAll(connection)
	return string(answer), err
}
