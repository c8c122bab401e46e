package drafting

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/schemas"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
)

// environmentsSchema names the schema of environments.yaml.
const environmentsSchema = "environments"

func schemaCommand(a *program.App) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [PREDICATE | environments]",
		Short: "Print the JSON Schema of mlpromote.yaml, environments.yaml or a signed predicate",
		Long: `Prints the JSON Schema of mlpromote.yaml, as this program reads it. init writes it next to the
spec as ` + spec.SchemaFile + `, where the first line of the spec points editors to it.

With "environments", prints the JSON Schema of environments.yaml. Put it next to the file, where the first line of the file points
editors to it:

  # yaml-language-server: $schema=` + schemas.EnvironmentsFile + `

With the name of a predicate, prints the JSON Schema of its signed content:
` + predicateNames(),
		Example: "  mlpromote schema > " + spec.SchemaFile + "\n  mlpromote schema parity > parity.schema.json\n" +
			"  mlpromote schema environments > .mlpromote/" + schemas.EnvironmentsFile,
		Args:      command.AtMost("PREDICATE"),
		ValidArgs: append([]string{environmentsSchema}, schemas.Predicates()...),
		RunE: func(_ *cobra.Command, args []string) error {
			schema, err := spec.Schema()
			switch {
			case len(args) == 1 && args[0] == environmentsSchema:
				schema, err = schemas.Environments(), nil
			case len(args) == 1:
				schema, err = schemas.Predicate(args[0])
			}
			if err != nil {
				return err
			}
			_, err = a.UI.Stdout.Write(schema)
			return err
		},
	}
}

// predicateNames lists the names of predicates, in lines of help.
func predicateNames() string {
	names := schemas.Predicates()
	half := len(names)/2 + 1
	return strings.Join(names[:half], ", ") + ",\n" + strings.Join(names[half:], ", ") + "."
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
