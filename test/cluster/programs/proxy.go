package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"unsafe"
)

// SO_ORIGINAL_DST: the destination of a connection before its redirect.
const originalDestination = 80

// report is the answer to a client, which is also logged.
type report struct {
	// Port on which the connection arrived here.
	Port int `json:"port"`
	// The address that the client connected to.
	Original string `json:"original"`
}

// proxy listens on the ports of linkerd's proxy, and tells each client its original destination.
func proxy([]string) error {
	failed := make(chan error)
	for _, port := range []int{4143, 4140} {
		go func() {
			failed <- listen(port, func(connection *net.TCPConn) string { return describe(port, connection) })
		}()
	}
	return <-failed
}

func describe(port int, connection *net.TCPConn) string {
	original, err := destination(connection)
	if err != nil {
		original = err.Error()
	}
	text, _ := json.Marshal(report{port, original})
	return string(text)
}

func destination(connection *net.TCPConn) (string, error) {
	raw, err := connection.SyscallConn()
	if err != nil {
		return "", err
	}
	var address syscall.RawSockaddrInet4
	size := uint32(unsafe.Sizeof(address))
	var failure syscall.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, failure = syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, syscall.SOL_IP, originalDestination,
			uintptr(unsafe.Pointer(&address)), uintptr(unsafe.Pointer(&size)), 0)
	})
	if err != nil {
		return "", err
	}
	if failure != 0 {
		return "", fmt.Errorf("SO_ORIGINAL_DST: %w", failure)
	}
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&address.Port))[:])
	return netip.AddrPortFrom(netip.AddrFrom4(address.Addr), port).String(), nil
}
