package main

import (
	"github.com/spf13/cobra"
)

// helpGroup is a part of the list of commands in the help of the program.
type helpGroup struct {
	title    string
	commands []string
}

// helpGroups has every command once. The main job comes first.
func helpGroups() []helpGroup {
	return []helpGroup{
		{"From a model to a node:", []string{"init", "plan", "build", "verify", "report", "promote", "resolve", "pull", "serve"}},
		{"Look at models, releases and differences:", []string{"list", "inspect", "history", "readiness", "bisect", "profile", "replay", "tune", "cases", "limits"}},
		{"Decide, stop and go back:", []string{"approve", "hold", "rollback", "quarantine", "evidence", "environments", "policy", "configuration", "key", "trust"}},
		{"Nodes and other programs:", []string{"node", "node-type", "render", "export", "save", "load", "ci", "assemble"}},
		{"Run a registry:", []string{"token", "health", "gc", "scrub", "backup", "restore", "reindex", "demo"}},
		{"This program:", []string{"toolchain", "cache", "schema", "completion", "help", "version"}},
	}
}

// addHelp puts the commands of the program into their groups.
func addHelp(root *cobra.Command) {
	of := make(map[string]string)
	for _, g := range helpGroups() {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, name := range g.commands {
			of[name] = g.title
		}
	}
	for _, c := range root.Commands() {
		c.GroupID = of[c.Name()]
	}
	root.SetHelpCommandGroupID(of["help"])
	root.SetCompletionCommandGroupID(of["completion"])
}
