package rendering

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
)

// Verb is what the command needs.
type Verb struct {
	UI *ui.UI
	// With opens the registry that the flags name, runs verb on it and closes it.
	With func(ctx context.Context, verb func(*wiring.Instance) error) error
}

// result is what the command prints.
type result struct {
	Environment string  `json:"environment"`
	Places      []Place `json:"places"`
	Changed     int     `json:"changed"` // places that were not what the environment resolves to
}

// Documents are the types of what the command prints with --output json.
func Documents() map[string][]reflect.Type {
	return map[string][]reflect.Type{"render": {reflect.TypeFor[result]()}}
}

// Command writes refs and digests into deployment files.
func (v Verb) Command() *cobra.Command {
	var environment string
	var check bool
	c := &cobra.Command{
		Use:   "render FILE...",
		Short: "Write the digests that an environment resolves to into deployment files",
		Long: `Sets the marked values of YAML files (Kubernetes, KServe, Helm values, Kustomize), and leaves every
other byte as it is. A marker is a comment behind the value:

  reference: ""  # {"$mlpromote": "vision/digits", "node-type": "g6.xlarge"}
  digest: ""     # {"$mlpromote": "vision/digits", "engine": "linux-amd64-v1/int8", "write": "digest"}

"write" is ref (the default), digest, image, image-digest, oci+native, oci+fetch, oci, repository or version. Without "engine" and "node-type" the
release is meant. "env" takes another environment than --env. What may not be used there is not written.

All files are checked before one is written. --check writes nothing: exit code 4 if a file
does not follow the environment.`,
		Example: "  mlpromote render deploy/*.yaml --env prod\n  mlpromote render deploy/*.yaml --env prod --check",
		Args:    command.AtLeast("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			return v.With(c.Context(), func(i *wiring.Instance) error { return v.render(c.Context(), i, environment, args, check) })
		},
	}
	c.Flags().StringVar(&environment, "env", "", "environment to take digests from")
	c.Flags().BoolVar(&check, "check", false, "write nothing, and fail if a file does not follow the environment")
	command.Required(c, "env")
	return c
}

func (v Verb) render(ctx context.Context, i *wiring.Instance, environment string, names []string, check bool) error {
	l := &lookup{registry: i, environment: environment, known: map[Marker]Target{}}
	out := result{Environment: environment, Places: []Place{}}
	var files []file
	for _, name := range names {
		f, err := readFile(name)
		if err == nil {
			err = f.answer(func(m Marker) (Target, error) { return l.target(ctx, m) })
		}
		if err != nil {
			return err
		}
		files, out.Places = append(files, f), append(out.Places, f.places...)
	}
	text := ""
	for _, p := range out.Places {
		if !p.Current() {
			out.Changed++
			text += fmt.Sprintf("%s:%d: %s is now %s\n", p.File, p.Line, ui.Dash(p.Was), p.Is)
		}
	}
	if len(out.Places) == 0 {
		return registry.WithHint(registry.Errorf(registry.CodeInvalid, "no value is marked in %s", strings.Join(names, ", ")),
			`want a comment behind a value: # {"$mlpromote": MODEL}`)
	}
	if check && out.Changed > 0 {
		if err := v.UI.Result(text, out); err != nil {
			return err
		}
		return registry.WithHint(registry.Errorf(registry.CodePolicy, "%s not follow %s",
			registry.Count(out.Changed, "value does", "values do"), environment), "mlpromote render without --check writes them")
	}
	if err := write(files, check); err != nil {
		return err
	}
	if text == "" {
		text = registry.Count(len(out.Places), "value", "values") + " follow " + environment + " already\n"
	}
	return v.UI.Result(text, out)
}

// answer says what each place of the file is to be.
func (f *file) answer(find func(Marker) (Target, error)) error {
	for n := range f.places {
		p := &f.places[n]
		target, err := find(p.Marker)
		if err == nil {
			p.Is, err = target.text(p.Marker.Write)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", f.name, p.Line, err)
		}
		p.Target = target.Digest
		p.Ref = registry.Ref{Host: target.Host, Environment: target.Environment, Model: target.Model, Tag: target.Version, Digest: target.Digest}.String()
	}
	return nil
}

func readFile(name string) (file, error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		return file{}, registry.Errorf(registry.CodeInvalid, "%s is no file", name)
	}
	if err == nil && info.Size() > maxBytes {
		return file{}, registry.Errorf(registry.CodeInvalid, "%s has %d bytes: want at most %d", name, info.Size(), maxBytes)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return file{}, registry.Errorf(registry.CodeInvalid, "%w", err)
	}
	return parse(name, data)
}

// write writes the files that change, after all of them are known to be good.
func write(files []file, check bool) error {
	texts := make([][]byte, len(files))
	for n, f := range files {
		var err error
		if texts[n], err = f.rendered(); err != nil {
			return err
		}
	}
	for n, f := range files {
		if check || f.current() {
			continue
		}
		if err := replace(f.name, texts[n]); err != nil {
			return err
		}
	}
	return nil
}

// replace writes a file with its mode. A link stays one.
func replace(name string, data []byte) error {
	path, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, data, info.Mode().Perm())
}

// current reports whether all places have what the environment resolves to.
func (f file) current() bool {
	for _, p := range f.places {
		if !p.Current() {
			return false
		}
	}
	return true
}
