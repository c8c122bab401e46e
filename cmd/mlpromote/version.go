package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  mlpromote version --output json",
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			platform := runtime.GOOS + "/" + runtime.GOARCH
			return a.ui.Result(fmt.Sprintf("mlpromote %s %s %s", a.version, runtime.Version(), platform), about{a.version, runtime.Version(), platform})
		},
	}
}

// about is what this program is.
type about struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}
