package serving

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// Setting is something that can be set in four places. A flag goes before a variable of the
// environment, that before a file, and that before the default.
type Setting struct {
	Name     string // of the flag, as --gc-interval
	at       any    // *string, *int, *bool or *time.Duration
	Fallback string
	usage    string
	secret   bool // never shown
	Shared   bool // a flag of all verbs, which is there already
}

// Env is the variable of the environment.
func (s Setting) Env() string {
	return "MLPROMOTE_" + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// key is the key in a file.
func (s Setting) key() string { return strings.ReplaceAll(s.Name, "-", "_") }

// parse reads a value and gives what sets it.
func (s Setting) parse(text string) (set func(), err error) {
	switch at := s.at.(type) {
	case *int:
		n, err := strconv.Atoi(text)
		return func() { *at = n }, err
	case *bool:
		b, err := strconv.ParseBool(text)
		return func() { *at = b }, err
	case *time.Duration:
		d, err := time.ParseDuration(text)
		return func() { *at = d }, err
	case *string:
		return func() { *at = text }, nil
	}
	return nil, fmt.Errorf("setting %s is a %T, which no text sets", s.Name, s.at)
}

// wanted says what a value looks like.
func (s Setting) wanted() string {
	switch s.at.(type) {
	case *int:
		return "a whole number"
	case *bool:
		return "true or false"
	case *time.Duration:
		return "a time such as 90s or 24h"
	}
	return "text"
}

// String is the value as it is. It, Set and Type make the setting the value of a flag.
func (s Setting) String() string {
	switch at := s.at.(type) {
	case *int:
		return strconv.Itoa(*at)
	case *bool:
		return strconv.FormatBool(*at)
	case *time.Duration:
		return at.String()
	case *string:
		return *at
	}
	return ""
}

// Set sets the value.
func (s Setting) Set(text string) error {
	set, err := s.parse(text)
	if err != nil {
		return fmt.Errorf("want %s", s.wanted())
	}
	set()
	return nil
}

// Type is what help calls a value.
func (s Setting) Type() string {
	return strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", s.at), "*"), "time.")
}

// DefineSettings makes a flag of each setting that is not a flag of all verbs already.
func DefineSettings(c *cobra.Command, settings []Setting) {
	for _, s := range settings {
		if s.Shared {
			continue
		}
		_ = s.Set(s.Fallback) // a test sees that every default is one
		flag := c.Flags().VarPF(s, s.Name, "", s.usage)
		if _, ok := s.at.(*bool); ok {
			flag.NoOptDefVal = "true"
		}
	}
}

// Effective is a setting as it is, and where that was said.
type Effective struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// ConfigFile is the name of the file in the data directory.
const ConfigFile = "serve.yaml"

// Resolve gives every setting its value. Flags have been read. The file is path, or where
// that is empty the one in the data directory, if there is one. Errors: CodeInvalid, which
// names the place.
func Resolve(c *cobra.Command, settings []Setting, getenv func(string) string, path string) ([]Effective, error) {
	file, err := readSettings(settings, path, c.Flag("data").Value.String())
	if err != nil {
		return nil, err
	}
	var all []Effective
	for _, s := range settings {
		from, text := "default", ""
		inFile, isInFile := file.values[s.Name]
		flagged := c.Flag(s.Name).Changed
		switch variable := getenv(s.Env()); {
		case flagged:
			from = "--" + s.Name
		case variable != "":
			from, text = s.Env(), variable
		case isInFile:
			from, text = file.path, inFile
		}
		if from != "default" && !flagged {
			if err := s.Set(text); err != nil {
				return nil, registry.Errorf(registry.CodeInvalid, "%s=%s: %w", from, s.show(text), err)
			}
		}
		all = append(all, Effective{s.Name, s.show(s.String()), from})
	}
	return all, nil
}

// show is a value as it may be seen. Of the URL of a server all but the password is no secret.
func (s Setting) show(value string) string {
	if !s.secret || value == "" {
		return value
	}
	if u, err := url.Parse(value); err == nil && u.Scheme != "" && u.Host != "" {
		if u.Scheme != "s3" { // which has no secrets there
			u.RawQuery = ""
		}
		return u.Redacted()
	}
	return "(hidden)"
}

// EffectiveText shows settings to people.
func EffectiveText(all []Effective) string {
	rows := [][]string{{"SETTING", "VALUE", "FROM"}}
	for _, e := range all {
		rows = append(rows, []string{e.Name, ui.Dash(e.Value), e.From})
	}
	return ui.Table(rows)
}

// settingsFile is a file of settings: YAML, a key for each.
type settingsFile struct {
	path     string
	settings []Setting
	inside   bool              // the data directory, so that it cannot say where that is
	values   map[string]string // by name of the setting
}

// readSettings reads the file at path, which must be there, or the one in the data
// directory, which may be.
func readSettings(settings []Setting, path, data string) (settingsFile, error) {
	f := settingsFile{path: path, settings: settings, values: make(map[string]string)}
	if path == "" {
		f.path, f.inside = filepath.Join(data, ConfigFile), true
	}
	raw, err := strictyaml.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) && f.inside {
		return f, nil
	}
	if err != nil {
		return f, registry.Errorf(registry.CodeInvalid, "read the configuration: %w", err)
	}
	_, err = strictyaml.Decode(f.path, raw, &f)
	return f, err
}

// DecodeYAML notes every key. An empty file sets nothing.
func (f *settingsFile) DecodeYAML(n *strictyaml.Node) {
	if n.Kind() != strictyaml.Mapping && n.Kind() != strictyaml.Null {
		n.Problemf("found %s: want a key for each setting", n.Kind())
	}
	var keys []string
	for _, s := range f.settings {
		keys = append(keys, s.key())
	}
	for _, e := range n.Entries() {
		i := slices.Index(keys, e.Key)
		if i < 0 {
			e.Name.Problemf("unknown setting %q%s: want one of %s", e.Key, registry.Suggest(e.Key, keys), strings.Join(keys, ", "))
			continue
		}
		s := f.settings[i]
		_, err := s.parse(e.Value.Text())
		switch {
		case f.inside && s.Name == "data":
			e.Name.Problemf("this file is in the data directory, so it cannot name another: use --config FILE")
		case e.Value.Kind() != strictyaml.Scalar || err != nil:
			e.Value.Problemf("%s: want %s", e.Key, s.wanted())
		default:
			f.values[s.Name] = e.Value.Text()
		}
	}
}
