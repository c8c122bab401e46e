// Package mlflow fetches models from an MLflow server over its REST API, without MLflow's own client and without loading
// anything. Names, listings and bytes that the server sends are untrusted.
package mlflow

import (
	"path"
	"regexp"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Scheme begins each address of a model on an MLflow server.
const Scheme = "mlflow:"

// Ref names a model as MLflow does. Either Name or Run is set.
type Ref struct {
	Name           string // registered model
	Version, Alias string // either, with Name
	Run, Path      string // run, and the name or artifact path that the model was logged with
}

// IsRef reports whether a model's name is an address on an MLflow server.
func IsRef(text string) bool { return strings.HasPrefix(text, Scheme) }

var (
	versionPattern = regexp.MustCompile(`^[1-9][0-9]{0,9}$`)
	runPattern     = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

const (
	maxName = 256 // bytes of a name, an alias or a path
	wanted  = "want mlflow:models:/NAME/VERSION, mlflow:models:/NAME@ALIAS or mlflow:runs:/RUN/PATH"
)

// ParseRef reads an address. Errors: CodeInvalid.
func ParseRef(text string) (Ref, error) {
	var r Ref
	rest := strings.TrimPrefix(text, Scheme)
	if models, ok := strings.CutPrefix(rest, "models:/"); ok {
		models = strings.TrimPrefix(models, "/") // models://NAME is an error of people that costs nobody anything
		if name, alias, ok := strings.Cut(models, "@"); ok {
			r = Ref{Name: name, Alias: alias}
		} else if name, version, ok := strings.Cut(models, "/"); ok {
			r = Ref{Name: name, Version: version}
		} else {
			r.Name = models
		}
	} else if runs, ok := strings.CutPrefix(rest, "runs:/"); ok {
		r.Run, r.Path, _ = strings.Cut(runs, "/")
	}
	if err := r.validate(); err != nil {
		return Ref{}, registry.Errorf(registry.CodeInvalid, "%.200q: %w", text, err)
	}
	return r, nil
}

func (r Ref) validate() error {
	plain := func(text string) bool {
		return text != "" && len(text) <= maxName && registry.ValidateText("name", text) == nil && !strings.ContainsAny(text, `\`)
	}
	switch {
	case r.Run != "":
		if !runPattern.MatchString(r.Run) || !localPath(r.Path) {
			return registry.Errorf(registry.CodeInvalid, "%s", wanted)
		}
	case !plain(r.Name) || strings.Contains(r.Name, "/"):
		return registry.Errorf(registry.CodeInvalid, "%s", wanted)
	case r.Alias != "":
		if !plain(r.Alias) || strings.ContainsAny(r.Alias, "/@") {
			return registry.Errorf(registry.CodeInvalid, "alias %.80q: %s", r.Alias, wanted)
		}
	case !versionPattern.MatchString(r.Version):
		return registry.WithHint(registry.Errorf(registry.CodeInvalid, "version %.80q: %s", r.Version, wanted),
			"a version is a number; set an alias for names such as champion, and write NAME@ALIAS. Stages are not read: MLflow replaced them by aliases")
	}
	return nil
}

// String is the address that [ParseRef] reads.
func (r Ref) String() string {
	switch {
	case r.Run != "":
		return Scheme + "runs:/" + r.Run + "/" + r.Path
	case r.Alias != "":
		return Scheme + "models:/" + r.Name + "@" + r.Alias
	}
	return Scheme + "models:/" + r.Name + "/" + r.Version
}

// base is a name for the model's file here, made of safe characters.
func (r Ref) base() string {
	name := r.Name
	if name == "" {
		name = path.Base(r.Path)
	}
	name = strings.Trim(unsafeInName.ReplaceAllString(name, "-"), "-.")
	return strings.TrimRight(name[:min(len(name), 100)], "-.")
}

var unsafeInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// localPath reports whether a path of an artifact stays below the folder that it is relative to.
func localPath(p string) bool {
	if p == "" || len(p) > maxName || path.IsAbs(p) || path.Clean(p) != p || p == "." || p == ".." || strings.HasPrefix(p, "../") {
		return false
	}
	return registry.ValidateText("path", p) == nil && !strings.ContainsAny(p, `\:*?"<>|`)
}
