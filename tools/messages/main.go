// Command messages writes docs/reference/messages.md: every message that a command can end with, by the words of the source, with its exit code, its
// hint, and a link if troubleshooting.md explains it.
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "messages:", err)
		os.Exit(1)
	}
}

// write writes the page of a repository, args[0], to a file, args[1].
func write(args []string) error {
	if len(args) != 2 {
		return errors.New("want messages ROOT FILE")
	}
	page, err := Page(args[0])
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], page, 0o644)
}
