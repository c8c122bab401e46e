//go:build !manpages

package main

import "github.com/spf13/cobra"

// manualPages is no verb in a released program: see manpages.go.
func manualPages(string, func(string) string) []*cobra.Command { return nil }
