package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
)

// Every command is in one group of the help, and every name there is a command.
func TestHelpHasEveryCommandOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := root(&program.App{UI: ui.NewPlain("mlpromote", &out, &out), Getenv: func(string) string { return "" }})
	r.InitDefaultHelpCmd()
	r.InitDefaultCompletionCmd()
	var listed []string
	for _, g := range helpGroups() {
		listed = append(listed, g.commands...)
	}
	var commands []string
	for _, c := range r.Commands() {
		if !c.Hidden {
			commands = append(commands, c.Name())
		}
	}
	slices.Sort(listed)
	slices.Sort(commands)
	if !slices.Equal(listed, commands) {
		t.Errorf("the groups of the help have\n%s, want\n%s", strings.Join(listed, " "), strings.Join(commands, " "))
	}
	if err := r.Help(); err != nil {
		t.Fatal(err)
	}
	main, others, _ := strings.Cut(out.String(), helpGroups()[1].title)
	if strings.Contains(out.String(), "Additional Commands") || !strings.Contains(main, "\n  serve ") || strings.Contains(others, "\n  build ") {
		t.Errorf("the help is\n%s", &out)
	}
}
