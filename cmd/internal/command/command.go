// Package command has what the verbs of all programs have in common: how a command line runs and which
// exit code it has, how mistakes on it are refused, and files that hold secrets in place of variables.
package command

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry"
)

// Unreleased is the version of a program that was built without one.
const Unreleased = "0.1.0-dev"

// Output is the flags that say what a program prints.
type Output struct {
	Format  string // --output
	Verbose bool   // --verbose
}

// Root makes c the command that holds all verbs of a program, with the flags of o.
func Root(c *cobra.Command, u *ui.UI, o *Output) *cobra.Command {
	c.Args, c.RunE = cobra.ArbitraryArgs, Unknown
	c.SilenceUsage, c.SilenceErrors, c.SuggestionsMinimumDistance = true, true, 2
	c.PersistentFlags().StringVar(&o.Format, "output", "text", "text or json")
	c.PersistentFlags().BoolVarP(&o.Verbose, "verbose", "v", false, "print more")
	c.SetOut(u.Stdout)
	c.SetErr(u.Stderr)
	c.SetFlagErrorFunc(Usage)
	return c
}

// Markdown is the annotation of a command that also prints Markdown with --output markdown.
const Markdown = "markdown"

// Check refuses a format that a command does not have. Errors: CodeInvalid.
func (o Output) Check(c *cobra.Command) error {
	_, markdown := c.Annotations[Markdown]
	switch {
	case o.Format == "text", o.Format == "json", o.Format == Markdown && markdown:
		return nil
	case markdown:
		return registry.Errorf(registry.CodeInvalid, "--output %q: want text, json or markdown", o.Format)
	}
	return registry.Errorf(registry.CodeInvalid, "--output %q: want text or json", o.Format)
}

// Run runs a command line and returns the exit code that docs/reference/exit-codes.md names. subject is what
// the verb was about, for its error; where it stays empty, that is the first argument.
func Run(ctx context.Context, root *cobra.Command, u *ui.UI, subject *string, args []string) int {
	root.SetArgs(args)
	u.JSON = ui.AsksForJSON(args) // before the verb is known, which may be a mistake
	ran, err := root.ExecuteContextC(ctx)
	if errors.Is(err, context.Canceled) {
		err = registry.Errorf(registry.CodeUnavailable, "interrupted; nothing is half done, run it again")
	}
	u.Close()
	if *subject == "" {
		*subject = ran.Flags().Arg(0)
	}
	err = errors.Join(err, u.Finish(err, *subject))
	u.Fail(err)
	return registry.ExitCode(err)
}

// Usage gives a mistake on the command line its code, and says where help is.
func Usage(c *cobra.Command, err error) error {
	return registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s: %s", c.CommandPath(), err.Error()), "%s --help", c.CommandPath())
}

// Exactly refuses a wrong number of arguments as bad usage, naming what is wanted.
func Exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return Usage(c, errors.New("want "+wanted(names)))
		}
		return nil
	}
}

// AtLeast takes one argument or more.
func AtLeast(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usage(c, errors.New("want at least one argument: "+name))
		}
		return nil
	}
}

// AtMost lets the last argument be left out.
func AtMost(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return Usage(c, errors.New("want at most one argument: "+name))
		}
		return nil
	}
}

func wanted(names []string) string {
	if len(names) == 0 {
		return "no arguments"
	}
	return strings.Join(names, " ")
}

// Group is a command that only holds others.
func Group(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: Unknown}
	c.AddCommand(children...)
	return c
}

// Unknown is what a command that only holds others does by itself: help, or the name
// of the command that was probably meant.
func Unknown(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	text := "unknown command " + args[0]
	if meant := c.SuggestionsFor(args[0]); len(meant) > 0 {
		text += " (did you mean " + strings.Join(meant, " or ") + "?)"
	}
	return Usage(c, errors.New(text))
}

// Required refuses a command line without the flags, as bad usage.
func Required(c *cobra.Command, names ...string) {
	before := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		for _, name := range names {
			if !c.Flags().Changed(name) {
				return Usage(c, errors.New("--"+name+" is missing"))
			}
		}
		if before != nil {
			return before(c, args)
		}
		return nil
	}
}
