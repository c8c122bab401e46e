//go:build manpages

package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/manpages"
	"mlpromote.dev/mlpromote/registry"
)

// manualPages is the verb that writes the manual pages. Builds have it with the tag manpages only:
// it needs a renderer of Markdown, which has no place in a program for production.
func manualPages(version string, getenv func(string) string) []*cobra.Command {
	return []*cobra.Command{{
		Use:   "man DIR",
		Short: "Write a manual page for each verb",
		Long: `Write a manual page for each verb into DIR. Their date is SOURCE_DATE_EPOCH,
in seconds since 1970, or the first day of 1970.`,
		Example: "  mlpromote reference man man/man1",
		Args:    command.Exactly("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			var seconds int64
			if epoch := getenv("SOURCE_DATE_EPOCH"); epoch != "" {
				var err error
				if seconds, err = strconv.ParseInt(epoch, 10, 64); err != nil {
					return registry.Errorf(registry.CodeInvalid, "SOURCE_DATE_EPOCH=%q: want seconds since 1970", epoch)
				}
			}
			return manpages.Write(c.Root(), version, time.Unix(seconds, 0), args[0])
		},
	}}
}
