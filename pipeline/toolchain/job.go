package toolchain

import (
	"io/fs"
	"regexp"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/registry"
)

// Job is one step of a build or verification.
type Job struct {
	Verb    Verb
	Inputs  []Input
	Options map[string]any // depend on verb and driver; JSON values
	// Machine names the class of CPU for steps that compute floats, and so is part of their
	// key: artifact.Node.Kind and the features that change arithmetic. Empty for steps whose
	// result is the same on every machine.
	Machine string
	Run     *RunOptions // for VerbRun, else nil
	// Accelerators are the vendors of accelerators that engines of the run are for, or that the compiler needs: "nvidia".
	// The driver may then use their devices. Machine has which devices these are.
	Accelerators []string
	Budget       Budget // no part of any key
}

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

// TuningFolder is a folder in the outputs of VerbCompile. Its files are not part of the engine:
// they are the tuning record, which a later job gets with RoleTuning.
const TuningFolder = "tuning"

// Input is a file that a job reads.
type Input struct {
	Role   string          // group: RoleModel, RoleCalibration, RoleCases
	Name   string          // relative, with '/', unique in its group
	Path   string          // where it is; no part of any key
	Digest registry.Digest // of its bytes
	Size   int64           // bytes

	file fs.FileInfo // which file was hashed; nil if it was not recorded
}

var rolePattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// Validate checks that the job is complete and that its names stay inside their groups. Errors:
// CodeInvalid.
func (j Job) Validate() error {
	switch j.Verb {
	case VerbProbe, VerbImport, VerbQuantize, VerbCompress, VerbCompile, VerbRun:
	default:
		return registry.Errorf(registry.CodeInvalid, "job: unknown verb %q", j.Verb)
	}
	seen := make(map[[2]string]bool, len(j.Inputs))
	for _, in := range j.Inputs {
		if err := in.validate(); err != nil {
			return registry.Errorf(registry.CodeInvalid, "%s: %w", j.Verb, err)
		}
		id := [2]string{in.Role, in.Name}
		if seen[id] {
			return registry.Errorf(registry.CodeInvalid, "%s: two inputs are called %s/%s", j.Verb, in.Role, in.Name)
		}
		seen[id] = true
	}
	if (j.Verb == VerbRun) != (j.Run != nil) {
		return registry.Errorf(registry.CodeInvalid, "%s: run options belong to the verb run, and to no other", j.Verb)
	}
	if j.Run != nil {
		return j.Run.validate(seen)
	}
	return nil
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
