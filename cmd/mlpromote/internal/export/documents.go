package export

import (
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
)

// Documents are the types of what the verbs print with --output json.
func Documents() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"export bom":             {reflect.TypeFor[WrittenBOM]()},
		"export model-signature": {reflect.TypeFor[WrittenSignature]()},
		"export policy":          {reflect.TypeFor[WrittenPolicy]()},
		"export target":          {reflect.TypeFor[ExportedTarget]()},
	}
}

// Command is the group of the verbs.
func (v Verbs) Command() *cobra.Command {
	return command.Group("export", "Write what other programs read", v.BOM(), v.ModelSignature(), v.Policy(), v.Target())
}
