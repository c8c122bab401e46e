// Command messages writes docs/reference/messages.md: every message that a command can end with, by the words of the source, with its exit code, its
// hint, and a link if troubleshooting.md explains it.
package main

import (
	"log"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: messages ROOT FILE")
	}
	page, err := Page(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(os.Args[2], page, 0o644); err != nil {
		log.Fatal(err)
	}
}
