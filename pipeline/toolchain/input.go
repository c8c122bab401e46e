package toolchain

import (
	"io/fs"
	"regexp"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/registry"
)

// The roles of inputs. Files of one role are one group: a model and its external data, the
// shards of a set of cases.
const (
	RoleModel       = "model"
	RoleCalibration = "calibration"
	RoleCases       = "cases"
	RoleOperators   = "operators" // operator libraries that the models need
	RoleRanges      = "ranges"    // a table of ranges from an earlier calibration
	RoleTuning      = "tuning"    // the tuning record of an earlier build for the target
)

// Input is a file that a job reads.
type Input struct {
	Role   string          // group: RoleModel, RoleCalibration, RoleCases
	Name   string          // relative, with '/', unique in its group
	Path   string          // where it is; no part of any key
	Digest registry.Digest // of its bytes
	Size   int64           // bytes

	file fs.FileInfo // which file was hashed; nil if it was not recorded
}

func (in Input) validate() error {
	switch {
	case !rolePattern.MatchString(in.Role):
		return registry.Errorf(registry.CodeInvalid, "input %q: role %q: want a lower-case word", in.Name, in.Role)
	case !fs.ValidPath(in.Name) || in.Name == "." || !utf8.ValidString(in.Name):
		return registry.Errorf(registry.CodeInvalid,
			"input name %q: want a relative path with '/' that stays in its folder", in.Name)
	case in.Path == "":
		return registry.Errorf(registry.CodeInvalid, "input %s/%s has no path", in.Role, in.Name)
	case in.Size < 0:
		return registry.Errorf(registry.CodeInvalid, "input %s/%s: size %d", in.Role, in.Name, in.Size)
	}
	if err := in.Digest.Validate(); err != nil {
		return registry.Errorf(registry.CodeInvalid, "input %s/%s: digest %q: %w", in.Role, in.Name, in.Digest, err)
	}
	return nil
}

var rolePattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
