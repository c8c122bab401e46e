package command

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
)

// About is what a program is.
type About struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Version is the verb that prints the version of a program.
func Version(u *ui.UI, version string) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  " + u.Program + " version --output json",
		Args:    Exactly(),
		RunE: func(*cobra.Command, []string) error {
			platform := runtime.GOOS + "/" + runtime.GOARCH
			return u.Result(fmt.Sprintf("%s %s %s %s", u.Program, version, runtime.Version(), platform), About{version, runtime.Version(), platform})
		},
	}
}
