// The programs of the test cluster's containers in one static executable; its first argument chooses one.
package main

import (
	"fmt"
	"os"
)

var programs = map[string]func(args []string) error{
	"inject":   inject,
	"pause":    pause,
	"proxy":    proxy,
	"serve":    serve,
	"dial":     dial,
	"validate": validate,
	"web":      web,
	"get":      get,
}

func main() {
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		usage := "inject | pause | proxy | serve PORT | dial ADDRESS… | validate ADDRESS | web PORT… | get URL…"
		fmt.Fprintln(os.Stderr, "usage: programs", usage)
		os.Exit(2)
	}
	if err := programs[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
