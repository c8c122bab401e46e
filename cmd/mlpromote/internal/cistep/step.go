package cistep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/ci"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/cireport"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
)

// maxPrinted is how much JSON a verb may print.
const maxPrinted = 64 << 20

// Verb is what the command needs.
type Verb struct {
	UI *ui.UI
	// Log is the log of the job. The UI makes control characters visible, of which commands of GitLab are made.
	Log    io.Writer
	Getenv func(name string) string
	// Secrets are the variables whose values are secrets.
	Secrets []string
}

// Documents are the types of what the command prints with --output json.
func Documents() map[string][]reflect.Type {
	return map[string][]reflect.Type{"ci step": {reflect.TypeFor[result]()}}
}

func verbs() []string { return []string{"build", "assemble", "verify", "promote", "rollback"} }

// Command runs a verb as a step of a CI job.
func (v Verb) Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "step [VERB [ARG...]]",
		Short: "Run a verb as a step of a CI job, with outputs and a summary",
		Long: `Runs build, assemble, verify, promote or rollback with its arguments, in the form of the system that the job runs
in: GitHub Actions (GITHUB_ACTIONS), GitLab (GITLAB_CI), or another one. In GitHub Actions, secrets in
variables are masked before, no line of the log is a command to the system, whatever a converter prints, and
an error is an annotation. In other systems mask secrets by their own settings. The exit code is the verb's.

Outputs: release-digest, ref, version, engine-digests and verdicts (JSON objects by label), allowed and
environment. They go to GITHUB_OUTPUT, or else as NAME=VALUE to the file that MLPROMOTE_CI_OUTPUTS
names (a dotenv report of GitLab); names there begin with MLPROMOTE_. Where MLPROMOTE_CI_RESULTS names the
folder of a Tekton task's results, each is a file there.

Without VERB, MLPROMOTE_STEP names it, each line of MLPROMOTE_ARGS is an argument, and MLPROMOTE_REF is the ref,
which is never read as a flag. MLPROMOTE_CI_JUNIT, MLPROMOTE_CI_CODEQUALITY and MLPROMOTE_CI_ANNOTATIONS name
files for the output of ci report in these formats after a build and a verification.`,
		Example: "  mlpromote ci step build -f mlpromote.yaml\n  mlpromote ci step promote --to prod --dry-run",
		RunE: func(c *cobra.Command, args []string) error {
			typed := len(args) > 0
			if !typed {
				args = v.variables()
			}
			if !slices.Contains(verbs(), args[0]) {
				return command.Usage(c, errors.New("want one of "+strings.Join(verbs(), ", ")+", as VERB or in MLPROMOTE_STEP"))
			}
			if typed && asksHelp(args) {
				return help(c, args[0])
			}
			args, err := v.ownOutput(args)
			if err != nil {
				return command.Usage(c, err)
			}
			return v.step(c.Context(), shared(c), v.withReason(args))
		},
	}
	c.Flags().SetInterspersed(false) // what comes behind VERB is its own
	return c
}

// withReason says in the history which run promotes, where the job gives no reason of its own.
func (v Verb) withReason(args []string) []string {
	run := ci.Run(v.Getenv)
	given := slices.ContainsFunc(args, func(a string) bool { return a == "--reason" || strings.HasPrefix(a, "--reason=") })
	if args[0] != "promote" || run == "" || given {
		return args
	}
	return slices.Insert(slices.Clone(args), 1, "--reason=by a CI job that claims to be "+run)
}

// asksHelp reports whether arguments ask for help on their verb.
func asksHelp(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--help") || slices.Contains(args, "-h")
}

// help prints the help of a verb. Only a person who types it gets it: a job whose variables ask for help does not end well
// with nothing done.
func help(c *cobra.Command, verb string) error {
	of, _, err := c.Root().Find([]string{verb})
	if err != nil {
		return err
	}
	return of.Help()
}

// ownOutput takes --output out of the arguments of the verb: the step reads what the verb prints, so the flag says how the step
// prints its own result, wherever it stands.
func (v Verb) ownOutput(args []string) ([]string, error) {
	var kept []string
	for n := 0; n < len(args); n++ {
		name, format, inline := strings.Cut(args[n], "=")
		if args[n] == "--" {
			return append(kept, args[n:]...), nil
		}
		if name != "--output" {
			kept = append(kept, args[n])
			continue
		}
		if !inline && n+1 < len(args) {
			n++
			format = args[n]
		}
		switch format {
		case "json":
			v.UI.JSON = true
		case "text":
			v.UI.JSON = false
		default:
			return nil, fmt.Errorf("--output %q: want json or text; the summary of the job has the decision as Markdown", format)
		}
	}
	return kept, nil
}

// variables are the verb and its arguments as variables of the job have them, for systems in which those cannot be arguments
// safely: a shell, or Kubernetes, which puts values of other variables into arguments.
func (v Verb) variables() []string {
	args := []string{v.Getenv("MLPROMOTE_STEP")}
	for line := range strings.SplitSeq(v.Getenv("MLPROMOTE_ARGS"), "\n") {
		if line != "" {
			args = append(args, line)
		}
	}
	if ref := v.Getenv("MLPROMOTE_REF"); ref != "" {
		args = append(args, "--", ref)
	}
	return args
}

// shared are the flags in front of the verb that every verb takes, such as --registry URL.
func shared(c *cobra.Command) []string {
	var flags []string
	c.InheritedFlags().Visit(func(f *pflag.Flag) {
		if f.Name != "output" {
			flags = append(flags, "--"+f.Name+"="+f.Value.String())
		}
	})
	return flags
}

// step runs the verb as a process of its own, so that nothing that it prints reaches the log on another way.
func (v Verb) step(ctx context.Context, flags, args []string) error {
	sys := detect(v.Getenv, clock.Now)
	for _, path := range []string{sys.outputs(), sys.summary()} { // before the verb changes anything
		if path == "" {
			continue
		}
		if err := appendTo(path, ""); err != nil {
			return err
		}
	}
	v.log(v.masks(sys))
	v.log(sys.open("mlpromote " + args[0]))
	printed, exit, err := v.run(ctx, slices.Concat(flags, []string{"--output", "json"}, args))
	v.log(sys.close())
	if err != nil {
		return err
	}
	r, err := outputsOf(args[0], exit, printed)
	if err != nil {
		return err
	}
	if err := v.handOn(sys, r); err != nil {
		return err
	}
	if err := v.summarize(ctx, sys, flags, r, printed); err != nil {
		return err
	}
	if err := v.report(ctx, sys, flags, r); err != nil {
		return err
	}
	if err := v.mark(ctx, sys, flags, r); err != nil {
		return err
	}
	v.log(sys.open("result")) // it can quote what a converter said
	out := v.UI.Result(ui.Dash(r.Outputs["ref"]), r)
	v.log(sys.close())
	if out != nil {
		return out
	}
	if exit != 0 {
		return failed(sys, v, r)
	}
	return nil
}

// log writes to the log of the job. Commands of a system and the lines of the verb are one stream, so that their order is
// that in which they were written.
func (v Verb) log(text string) { _, _ = io.WriteString(v.Log, text) }

// masks hides the values of secret variables.
func (v Verb) masks(sys system) string {
	var text strings.Builder
	for _, name := range v.Secrets {
		if secret := v.Getenv(name); secret != "" {
			text.WriteString(sys.mask(secret))
		}
	}
	return text.String()
}

// run runs this program with the verb. It has our environment, and what we keep out of that of others: it is what a
// step without this verb would start.
func (v Verb) run(ctx context.Context, args []string) (printed []byte, exit int, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	child := exec.CommandContext(ctx, program, args...)
	child.Env = append(os.Environ(), "NO_COLOR=1")
	if secret := v.Getenv(command.JobSecret); secret != "" {
		child.Env = append(child.Env, command.JobSecret+"="+secret)
	}
	child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	child.WaitDelay = 20 * time.Second
	var stdout limited
	child.Stdout, child.Stderr = &stdout, v.Log
	err = child.Run()
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended) && ended.ExitCode() > 0:
		return stdout.Bytes(), ended.ExitCode(), nil
	case err != nil:
		// Without the arguments: this is said outside of what the system takes for no command.
		return nil, 0, registry.Errorf(registry.CodeUnavailable, "the step was interrupted: %w", err)
	}
	return stdout.Bytes(), 0, nil
}

// limited keeps what a process prints, up to maxPrinted bytes.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxPrinted {
		return 0, io.ErrShortBuffer
	}
	return l.Buffer.Write(p)
}

// handOn gives the outputs to later steps.
func (v Verb) handOn(sys system, r result) error {
	if sys.outputs() == "" {
		return nil
	}
	files, err := sys.encode(r.names(), r.Outputs)
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := appendTo(path, files[path]); err != nil {
			return err
		}
	}
	return nil
}

// summarize adds what the release of the step would change to the summary of the job, or the decision of a promotion that
// was refused or tried. A release that nothing can be said about, such as one that is not there after a failure, is left out.
func (v Verb) summarize(ctx context.Context, sys system, flags []string, r result, printed []byte) error {
	path, ref := sys.summary(), r.Outputs["ref"]
	if text := decided(r, printed); path != "" && text != "" {
		return appendTo(path, text)
	}
	if path == "" || !r.changes() {
		return nil
	}
	v.log(sys.open("mlpromote ci report"))
	text, exit, err := v.run(ctx, slices.Concat(flags, []string{"ci", "report", ref}))
	v.log(sys.close())
	if err != nil || exit != 0 {
		return err
	}
	return appendTo(path, string(text))
}

// report writes the files that variables of the job ask for.
func (v Verb) report(ctx context.Context, sys system, flags []string, r result) error {
	for _, format := range []string{"junit", "codequality", "annotations"} {
		path := v.Getenv("MLPROMOTE_CI_" + strings.ToUpper(format))
		if path == "" || !r.changes() {
			continue
		}
		v.log(sys.open("mlpromote ci report " + format))
		_, _, err := v.run(ctx, slices.Concat(flags, []string{"ci", "report", "--format", format, "--out", path, "--", r.Outputs["ref"]}))
		v.log(sys.close())
		if err != nil {
			return err
		}
	}
	return nil
}

// mark marks in the log what failed and what changed at lines of the spec. The commands are those of this program,
// which escapes what others said.
func (v Verb) mark(ctx context.Context, sys system, flags []string, r result) error {
	if sys.marks() == "" || !r.changes() {
		return nil
	}
	v.log(sys.open("mlpromote ci report " + sys.marks()))
	text, exit, err := v.run(ctx, slices.Concat(flags, []string{"ci", "report", "--format", sys.marks(), "--", r.Outputs["ref"]}))
	v.log(sys.close())
	if err != nil || exit != 0 {
		return err
	}
	v.log(string(text))
	return nil
}

// decided is the decision of a promotion that did not move the head, as Markdown. It is the one that the verb printed: one
// that is asked for again could be another. Empty: there is none.
func decided(r result, printed []byte) string {
	var p api.Promotion
	if r.Verb != "promote" || r.Outputs["ref"] != "" || json.Unmarshal(printed, &p) != nil || p.Model == "" {
		return ""
	}
	refusal := ""
	if r.Failure != nil {
		refusal = r.Failure.Message
	}
	return cireport.Decision(p, refusal)
}

// failed is the error of the verb, with its exit code, marked in the log.
func failed(sys system, v Verb, r result) error {
	message, code := fmt.Sprintf("exit code %d", r.Exit), registry.CodeInternal
	if r.Failure != nil {
		message, code = r.Failure.Message, registry.Code(r.Failure.Code)
		if r.Failure.Hint != "" {
			message += "\n" + r.Failure.Hint
		}
	}
	v.log(sys.failure("mlpromote "+r.Verb, message))
	return registry.Errorf(code, "%s failed", r.Verb)
}
