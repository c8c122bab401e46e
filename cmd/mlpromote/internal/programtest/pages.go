package programtest

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Block is a fenced block of a page: shell that is typed, or a file that is saved.
type Block struct {
	Line  int      // of the page
	Exit  int      // the exit code that the shell must end with
	File  string   // name of the file that has the text; empty for shell
	Text  string   // what is typed or saved
	Shows []string // lines of the output as the page shows them, where … stands for anything
}

var fence = regexp.MustCompile("^```sh(?: (served|node|postgres|move|proxy|images|parquet|torch|ten|receiver|promote))?(?: exit=([0-9]+))?$")

// Blocks finds the blocks of a page that start with ```sh, with the exit code that the info
// string asks for. Those of the kind "served" want a service at $URL, those of the kind
// "node" one that knows a node type, those of the kinds "postgres" and "move" a database, those of "proxy" a service
// of models, those of "images" some, those of "torch" a Python that has PyTorch. The page is a path in the repository.
// A block whose info string has a file name, such as ```python train.py, is a file. A block of ```text is the output of the shell before it.
func Blocks(tb testing.TB, page, kind string) []Block {
	tb.Helper()
	data, err := os.ReadFile(Root(page))
	if err != nil {
		tb.Fatal(err)
	}
	var blocks []Block
	var open *Block
	output := false
	for i, line := range strings.Split(string(data), "\n") {
		switch {
		case line == closed && (open != nil || output):
			if open != nil {
				blocks = append(blocks, *open)
			}
			open, output = nil, false
		case open != nil:
			open.Text += line + "\n"
		case output:
			last := &blocks[len(blocks)-1]
			last.Shows = append(last.Shows, line)
		case line == shown && len(blocks) > 0:
			output = true
		default:
			open = opened(line, kind, i+1)
		}
	}
	if len(blocks) == 0 {
		tb.Fatalf("%s has no shell blocks", page)
	}
	return blocks
}

// opened returns the block that a line begins, or nil.
func opened(line, kind string, number int) *Block {
	if file := saved.FindStringSubmatch(line); file != nil {
		return &Block{Line: number, File: file[1]}
	}
	m := fence.FindStringSubmatch(line)
	if m == nil || m[1] != kind {
		return nil
	}
	exit, _ := strconv.Atoi(m[2]) // digits, or nothing
	return &Block{Line: number, Exit: exit}
}

const (
	shown  = "```text"
	closed = "```"
)

var saved = regexp.MustCompile("^```[a-z]+ ([a-z_]+\\.[a-z]+)$")

// Missing returns the first of the lines that a page shows of an output and that the output does not have in this order, or "".
func (b Block) Missing(output string) string {
	for _, line := range b.Shows {
		parts := strings.Split(line, "…")
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(strings.TrimSpace(part))
		}
		at := regexp.MustCompile(`(?m)^\s*` + strings.Join(parts, ".*") + `\s*$`).FindStringIndex(output)
		if at == nil {
			return line
		}
		output = output[at[1]:]
	}
	return ""
}
