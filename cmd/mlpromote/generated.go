package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/schemas"
)

//go:generate go run . reference schema ../../docs/reference/output.schema.json
//go:generate go run . reference predicates ../../docs/reference/predicates
//go:generate go run ../../tools/messages ../.. ../../docs/reference/messages.md

// referenceCommand writes what is generated from the verbs, for docs and packages.
func referenceCommand(version string, getenv func(string) string) *cobra.Command {
	schema := &cobra.Command{
		Use:     "schema FILE",
		Short:   "Write the JSON Schema of what verbs print with --output json",
		Example: "  mlpromote reference schema output.schema.json",
		Args:    command.Exactly("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := outputSchemaText()
			if err != nil {
				return err
			}
			return os.WriteFile(args[0], text, 0o644)
		},
	}
	c := command.Group("reference", "Write reference pages that are generated from the verbs", append(manualPages(version, getenv), schema, predicatesCommand())...)
	c.Hidden = true
	return c
}

func outputSchemaText() ([]byte, error) {
	return schemas.Output(documents(), unprefixed()...)
}

// predicatesCommand writes the schemas of predicates.
func predicatesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "predicates FOLDER",
		Short:   "Write the JSON Schemas of the predicates that mlpromote signs",
		Example: "  mlpromote reference predicates docs/reference/predicates",
		Args:    command.Exactly("FOLDER"),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, name := range schemas.Predicates() {
				text, err := schemas.Predicate(name)
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(args[0], name+".schema.json"), text, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
