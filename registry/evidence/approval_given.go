package evidence

import (
	"fmt"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// localRegistry is the name of registries that were given none.
const localRegistry = "local"

// Foreign reports whether nothing shows that an approval is for this registry.
func (g GivenApproval) Foreign() bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(g.ResourceURI, registry.ResourceScheme), "/")
	return g.observed == 0 && (len(g.History) > 0 || name == localRegistry)
}

// ApprovalState says whether an approval counts. The zero ApprovalState counts for nothing.
type ApprovalState string

// The states of an approval by a trusted approver.
const (
	ApprovalStands    ApprovalState = "stands"
	ApprovalWithdrawn ApprovalState = "withdrawn" // by its signer
	ApprovalExpired   ApprovalState = "expired"
	ApprovalByBuilder ApprovalState = "builder" // its signer also signed a build of the release
	ApprovalLeft      ApprovalState = "left"    // the environment was rolled back from the release since
	ApprovalForeign   ApprovalState = "foreign" // nothing shows that it is for this registry, and not for another one of its name
	// ApprovalUnlisted: it is attested, and the environment does not list the person.
	ApprovalUnlisted ApprovalState = "unlisted"
)

// GivenApproval is an approval of a release by a trusted approver.
type GivenApproval struct {
	Approval
	State  ApprovalState   `json:"state"`
	Signer string          `json:"signer"`         // key identifier
	Keys   []string        `json:"keys,omitempty"` // of the signer, as in [Claim]
	Bundle registry.Digest `json:"bundle"`

	Recorded int64 `json:"-"` // as [Claim] has it
	observed int64 // likewise
}

// String describes the approval in a line: who, for what, why, and whether it counts.
func (g GivenApproval) String() string {
	text := fmt.Sprintf("approval by %s %s", g.By(), g.reason())
	switch {
	case g.State == ApprovalStands && !g.ExpiresOn.IsZero():
		text += fmt.Sprintf(" (until %s)", registry.UTC(g.ExpiresOn))
	case g.State == ApprovalStands:
	default:
		text += " (does not count: " + g.Why() + ")"
	}
	return registry.PlainText(text)
}

// Approvals lists the approvals of a release for all resources, with their states at a time. It
// leaves out withdrawals, and evidence that does not count, such as that of a revoked key. Of an
// attested one only a [policy.Policy] can say whether the environment lists its person. Claims
// whose role was judged for another resource than the approval's must not be among the claims.
func Approvals(r artifact.Release, claims []Claim, now time.Time) []GivenApproval {
	counted, _ := Count(r, claims)
	builders := Builders(r, claims)
	statements := Distinct(counted.Of(PredicateApproval, r.Digest))
	var given []GivenApproval
	for _, c := range statements {
		a, ok := c.Approval()
		if !ok || a.Withdrawn {
			continue
		}
		g := GivenApproval{Approval: a, State: ApprovalStands, Signer: c.Signer, Keys: c.Keys, Bundle: c.Bundle, Recorded: c.Recorded, observed: c.Observed}
		switch {
		case Withdrawn(c, a.ResourceURI, statements):
			g.State = ApprovalWithdrawn
		case builders[c.Signer]:
			g.State = ApprovalByBuilder
		case a.expired(now):
			g.State = ApprovalExpired
		}
		given = append(given, g)
	}
	return given
}

// Withdrawn reports whether the signer of an approval for a resource took it back. The order is that of the
// history: without it, the withdrawal wins. A statement that cannot be read could be a withdrawal
// for any resource, so it counts as one.
func Withdrawn(c Claim, resource string, statements []Claim) bool {
	for _, other := range statements {
		taken, readable := other.Approval()
		same := other.voice() == c.voice() || !readable && other.Signer == c.Signer
		if !same || readable && (!taken.Withdrawn || taken.ResourceURI != resource) {
			continue
		}
		if later := other.Recorded > 0 && c.Recorded > other.Recorded; !later {
			return true
		}
	}
	return false
}

// Builders returns the signers of every signature and provenance of the release and its engines,
// also of those that do not count: who took part in a build does not approve it.
func Builders(r artifact.Release, claims []Claim) map[string]bool {
	all := make(map[string]bool)
	for _, c := range claims {
		_, isSubject := r.Subject(c.Subject)
		about := isSubject && c.Statement.About(c.Subject)
		if role, ok := RoleFor(c.Statement.PredicateType); about && ok && role == RoleBuilder {
			all[c.Signer] = true
		}
	}
	return all
}

// IsBuilder reports whether a key signed a build of the release: its signature or provenance, or that
// of an engine. Such a key cannot approve the release.
func IsBuilder(r artifact.Release, claims []Claim, signer string) bool {
	return Builders(r, claims)[signer]
}

// Voice identifies who approves: the key, or the person.
func (g GivenApproval) Voice() string {
	if g.Person != nil {
		return g.Person.Key()
	}
	return g.Signer
}

// By names who approves: a person, or the signer by the file of its key if that is known.
func (g GivenApproval) By() string {
	if g.Person != nil {
		return registry.PlainText(g.Person.String()) + " (according to the service)"
	}
	if len(g.Keys) > 0 {
		return registry.PlainText(g.Keys[0])
	}
	return "key " + g.Signer
}

// Why says why the approval does not count.
func (g GivenApproval) Why() string {
	switch g.State {
	case ApprovalWithdrawn:
		return g.By() + " took its approval back"
	case ApprovalExpired:
		return fmt.Sprintf("that of %s expired on %s", g.By(), registry.UTC(g.ExpiresOn))
	case ApprovalByBuilder:
		if g.Person != nil {
			return g.By() + " published or signed the build, so it cannot approve"
		}
		return g.By() + " signed the build, so it cannot approve"
	case ApprovalForeign:
		return "that of " + g.By() + " names no event of this registry's history: it may be for another one of this name (mlpromote approve names one; " +
			"approvals of other tools need a registry: in environments.yaml that is not local)"
	case ApprovalLeft:
		return "that of " + g.By() + " is from before the environment was rolled back from this release"
	case ApprovalUnlisted:
		return "that of " + g.By() + " does not count: the environment does not list the person (approvals: attested:)"
	}
	return "that of " + g.By() + " does not count"
}
