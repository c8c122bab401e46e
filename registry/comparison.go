package registry

import (
	"context"
	"fmt"
	"strings"
)

// The requirements that compare a release with the one that it replaces. Both are met where the
// environment has none yet.
const (
	// No limit is looser than that of the release now there. Limits that cannot be compared count
	// as looser.
	RequireNoLooser = "no-looser"
	// What calls the release now there can call this one.
	RequireCompatibleInterface = "compatible-interface"
)

// Comparison is how the limits and the interface of a release differ from those of the release that
// it replaces. A nil *Comparison is not known, which refuses.
type Comparison struct {
	Version   string   // of the release that is replaced
	Looser    []string // each limit that is looser, in words; the same words for the same limit
	Interface []string // each difference that a caller would notice
}

// Located is a release in a repository.
type Located struct {
	Repository string
	Release    Release
}

// CompareReleases reads limits and interface of two releases and compares them. Errors: those of
// reading, CodeDigest among them; CodeInvalid if a document cannot be understood.
type CompareReleases func(ctx context.Context, now, was Located) (Comparison, error)

// Compares reports whether a requirement of the policy needs a [Comparison].
func (p Policy) Compares() bool {
	for _, name := range p.Require {
		if name == RequireNoLooser || name == RequireCompatibleInterface {
			return true
		}
	}
	return false
}

// judgeComparison decides a requirement that compares with the release that is replaced.
func (p Policy) judgeComparison(name string, r Release) Requirement {
	req := Requirement{Name: name, Subject: "release"}
	switch {
	case p.Replay || p.Head == r.Digest && p.Environment != "":
		req.Met, req.Detail = true, "it replaces nothing: it is there already"
	case p.Environment == "" || p.Head != "" && p.Comparison == nil:
		req.Detail = "it was not compared with the release that it replaces"
	case p.Head == "":
		req.Met, req.Detail = true, p.Environment+" has no release yet"
	case name == RequireNoLooser:
		req.Met, req.Detail = len(p.Comparison.Looser) == 0, "no limit is looser than in "+p.Comparison.Version
		if !req.Met {
			req.Detail = fmt.Sprintf("%s looser than in %s, which %s has now: %s", Count(len(p.Comparison.Looser), "limit"),
				p.Comparison.Version, p.Environment, strings.Join(p.Comparison.Looser, "; "))
		}
	default:
		req.Met, req.Detail = len(p.Comparison.Interface) == 0, "what calls "+p.Comparison.Version+" can call it"
		if !req.Met {
			req.Detail = fmt.Sprintf("what calls %s, which %s has now, cannot call it: %s", p.Comparison.Version, p.Environment,
				strings.Join(p.Comparison.Interface, "; "))
		}
	}
	return req
}
