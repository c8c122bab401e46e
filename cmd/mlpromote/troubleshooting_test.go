package main

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// heading is a message of troubleshooting.md.
var heading = regexp.MustCompile("(?m)^### `(.+?)`")

// TestTroubleshooting looks for every message of the page in the program: its fixed parts, in
// their order, in one text of the source. Messages of the kubelet are in the tests that wait for them in a cluster.
func TestTroubleshooting(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := sourceTexts(t, "../..")
	messages := heading.FindAllStringSubmatch(string(page), -1)
	if len(messages) < 20 || len(texts) < 1000 {
		t.Fatalf("the page has %d messages, and the source %d texts", len(messages), len(texts))
	}
	for _, m := range messages {
		if !said(texts, strings.Split(m[1], "…")) {
			t.Errorf("troubleshooting.md has %q, which the program does not say", m[1])
		}
	}
}

func said(texts, parts []string) bool {
	for _, text := range texts {
		found := true
		for _, part := range parts {
			_, rest, ok := strings.Cut(text, part)
			if text = rest; !ok {
				found = false
				break
			}
		}
		if found {
			return true
		}
	}
	return false
}

// sourceTexts are the texts in the Go files of the program, and the lines of the drivers of toolchains.
func sourceTexts(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	for _, folder := range []string{"cmd", "pipeline", "registry", "signer", "validators"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			inCluster := filepath.Base(filepath.Dir(path)) == "kubernetes"
			if err == nil && filepath.Ext(path) == ".py" { // a driver
				source, err := os.ReadFile(path)
				all = append(all, strings.Split(string(source), "\n")...)
				return err
			}
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") && !inCluster {
				return err
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			var s scanner.Scanner
			files := token.NewFileSet()
			s.Init(files.AddFile(path, -1, len(source)), source, nil, 0)
			for {
				_, kind, literal := s.Scan()
				if kind == token.EOF {
					return nil
				}
				if kind == token.STRING {
					if text, err := strconv.Unquote(literal); err == nil {
						all = append(all, text)
					}
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}
