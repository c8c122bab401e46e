package program

import "github.com/spf13/cobra"

// SpecFlag adds the flag that names a spec.
func SpecFlag(c *cobra.Command, file *string) {
	c.Flags().StringVarP(file, "file", "f", "mlpromote.yaml", "spec to read")
}
