package export

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// maxPolicyFile is the largest file that is read as an exported policy.
const maxPolicyFile = 8 << 20

// Standing compares a file with what would be exported now.
type Standing struct {
	Current     bool      `json:"current"`
	ExportedAt  time.Time `json:"exportedAt"` // what the file says
	Differences []string  `json:"differences"`

	text string
}

var (
	atLine      = regexp.MustCompile(`(?m)^    ` + regexp.QuoteMeta(exportedAt) + `: "([^"\n]*)"$`)
	counterLine = regexp.MustCompile(`(?m)^    ` + regexp.QuoteMeta(restrictionList) + `: "([^"\n]*)"$`)
	digests     = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
)

// CheckPolicy reads a policy that was exported before and compares it with the one of now, for the same
// consumer. Only the time may differ. Errors: CodeNotFound without the file; CodeInvalid if it is no exported policy;
// CodeTrust if it rests on a later restriction list than the registry has now: the registry then shows an older state.
func CheckPolicy(path, consumer string, a Admission) (Standing, error) {
	text, err := readPolicy(path)
	if err != nil {
		return Standing{}, err
	}
	at, counter, err := annotated(path, text)
	if err != nil {
		return Standing{}, err
	}
	if counter > a.RestrictionList {
		return Standing{}, registry.WithHint(
			registry.Errorf(registry.CodeTrust, "%s rests on restriction list %d of %s, and the registry has list %d now: it shows an older state",
				path, counter, a.Environment, a.RestrictionList),
			"mlpromote history verify; if the lists were lost, mlpromote quarantine restore puts an exported one back")
	}
	want, err := a.YAML(consumer, at)
	if err != nil {
		return Standing{}, err
	}
	s := Standing{Current: text == want, ExportedAt: at, Differences: []string{}, text: text}
	if !s.Current {
		s.Differences = differences(text, want, a)
	}
	return s, nil
}

func readPolicy(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", registry.Errorf(registry.CodeNotFound, "policy %s: %w", path, err)
	case err == nil && (!info.Mode().IsRegular() || info.Size() > maxPolicyFile):
		return "", registry.Errorf(registry.CodeInvalid, "policy %s: want a file of at most %d bytes", path, maxPolicyFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", registry.Errorf(registry.CodeInvalid, "policy %s: %w", path, err)
	}
	return string(data), nil
}

// annotated reads the time of the export and the counter of the restriction list.
func annotated(path, text string) (time.Time, int64, error) {
	at, counter := atLine.FindStringSubmatch(text), counterLine.FindStringSubmatch(text)
	if at == nil || counter == nil {
		return time.Time{}, 0, registry.Errorf(registry.CodeInvalid, "policy %s: no annotations of mlpromote export policy", path)
	}
	when, err := time.Parse(time.RFC3339, at[1])
	if err != nil {
		return time.Time{}, 0, registry.Errorf(registry.CodeInvalid, "policy %s: %s %q: %w", path, exportedAt, at[1], err)
	}
	n, err := strconv.ParseInt(counter[1], 10, 64)
	if err != nil || n < 0 {
		return time.Time{}, 0, registry.Errorf(registry.CodeInvalid, "policy %s: %s %q: want a number", path, restrictionList, counter[1])
	}
	return when, n, nil
}

// differences says what matters most of what changed.
func differences(text, want string, a Admission) (out []string) {
	was, is := found(digests, text), found(digests, want)
	for _, d := range a.Denied {
		if !was[string(d.Digest)] {
			out = append(out, "it does not deny "+string(d.Digest)+" ("+d.Kind+" of "+d.Model+")")
		}
	}
	for d := range was {
		if !is[d] && d != noDigest {
			out = append(out, "it denies "+d+", which may be used")
		}
	}
	for _, k := range a.Keys {
		if !strings.Contains(text, k.ID[:16]) {
			out = append(out, "it does not accept the promoter key "+strings.Join(k.Names, ", "))
		}
	}
	for _, id := range found16(text) {
		if !strings.Contains(want, id) {
			out = append(out, "it accepts the key "+id+"..., which does not count now")
		}
	}
	if len(out) == 0 {
		out = append(out, "it has other rules than an export of now")
	}
	return out
}

func found(pattern *regexp.Regexp, text string) map[string]bool {
	all := map[string]bool{}
	for _, match := range pattern.FindAllString(text, -1) {
		all[match] = true
	}
	return all
}

var promoters = regexp.MustCompile(`(?m)^    ` + regexp.QuoteMeta(annotation) + `promoters: "([0-9a-f ]*)"$`)

// found16 are the beginnings of the identifiers of the keys that a file accepts, as its annotation says them.
func found16(text string) []string {
	if m := promoters.FindStringSubmatch(text); m != nil {
		return strings.Fields(m[1])
	}
	return nil
}
