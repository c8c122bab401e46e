package main

import (
	"bytes"
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
)

//go:generate go run . reference schema ../../docs/reference/output.schema.json

// referenceCommand writes what is generated from the verbs, for docs and packages.
func (a *app) referenceCommand() *cobra.Command {
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
	c := command.Group("reference", "Write reference pages that are generated from the verbs", append(a.manualPages(), schema)...)
	c.Hidden = true
	return c
}

func outputSchemaText() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err := encoder.Encode(outputSchema())
	return out.Bytes(), err
}
