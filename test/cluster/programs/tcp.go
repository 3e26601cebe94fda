package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// listen answers every connection to a port with one line, which it also logs.
func listen(port int, answer func(*net.TCPConn) string) error {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{Port: port})
	if err != nil {
		return err
	}
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

// serve stands for an application.
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

// dial prints what an address answers.
func dial(args []string) error {
	if len(args) != 1 {
		return errors.New("dial needs an address")
	}
	connection, err := net.DialTimeout("tcp", args[0], 3*time.Second)
	if err != nil {
		return err
	}
	_ = connection.SetDeadline(time.Now().Add(3 * time.Second))
	answer, err := io.ReadAll(connection)
	fmt.Print(string(answer))
	return err
}
