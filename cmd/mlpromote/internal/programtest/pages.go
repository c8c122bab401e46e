package programtest

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Block is a fenced block of shell in a page.
type Block struct {
	Line int    // of the page
	Exit int    // the exit code that the block must end with
	Text string // what is typed
}

var fence = regexp.MustCompile("^```sh(?: (served|node|postgres|move|proxy|images|parquet|torch|ten|receiver|promote))?(?: exit=([0-9]+))?$")

// Blocks finds the blocks of a page that start with ```sh, with the exit code that the info
// string asks for. Those of the kind "served" want a service at $URL, those of the kind
// "node" one that knows a node type, those of the kinds "postgres" and "move" a database, those of "proxy" a service
// of models, those of "images" some, those of "torch" a Python that has PyTorch. The page is a path in the repository.
func Blocks(tb testing.TB, page, kind string) []Block {
	tb.Helper()
	data, err := os.ReadFile(Root(page))
	if err != nil {
		tb.Fatal(err)
	}
	var blocks []Block
	var open *Block
	for i, line := range strings.Split(string(data), "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open == nil && m != nil && m[1] == kind:
			open = &Block{Line: i + 1}
			if m[2] != "" {
				open.Exit, err = strconv.Atoi(m[2])
				if err != nil {
					tb.Fatal(err)
				}
			}
		case open != nil && line == "```":
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.Text += line + "\n"
		}
	}
	if len(blocks) == 0 {
		tb.Fatalf("%s has no shell blocks", page)
	}
	return blocks
}
