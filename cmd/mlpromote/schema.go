package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of mlpromote.yaml",
		Long: `Prints the JSON Schema of mlpromote.yaml, as this program reads it. init writes it beside the
spec as ` + spec.SchemaFile + `, where the first line of the spec points editors to it.`,
		Example: "  mlpromote schema > " + spec.SchemaFile,
		Args:    command.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			schema, err := spec.Schema()
			if err != nil {
				return err
			}
			_, err = a.ui.Stdout.Write(schema)
			return err
		},
	}
}

// writeSchema writes the schema into the folder of a spec. Whatever else has its name there
// stays, and is an error.
func writeSchema(folder string) error {
	file := filepath.Join(folder, spec.SchemaFile)
	schema, err := spec.Schema()
	if err != nil {
		return err
	}
	there, err := os.ReadFile(file)
	if err == nil && !bytes.Contains(there, []byte(spec.SchemaID)) {
		return registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s exists and is not the schema of a spec", file), "rename it")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(file, schema, 0o644)
}
