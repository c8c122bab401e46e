package policy

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// The items of a checklist, in order: of the release, and of each engine.
const (
	ReadyBuiltOnce      = "built once"
	ReadySignature      = "signed"
	ReadyCrossCheck     = "reference cross-checked"
	ReadyOrigin         = "provenance names a commit"
	ReadyLabels         = "classes and features named"
	ReadyUnrestricted   = "no quarantine and no restriction"
	ReadyApprovals      = "approved"
	ReadyCoverage       = "node types covered"
	ReadyRollback       = "rollback target"
	ReadyProvenance     = "provenance complete"
	ReadyReproducible   = "build reproducible"
	ReadyCalibration    = "calibrated apart from the cases"
	ReadySafe           = "no unsafe format"
	ReadyParity         = "parity on the target"
	ReadyRecorded       = "cases recorded"
	ReadyWorst          = "worst case known"
	ReadyAccuracy       = "accuracy bounded"
	ReadyLatency        = "latency measured"
	ReadyPlainLoad      = "load profile against a plain load"
	ReadyConsistency    = "repeats, batches and shapes tried"
	ReadyRequiredNodes  = "shown on the required node types"
	CommandVerify       = "mlpromote verify "
	CommandBuild        = "mlpromote build"
	InSpec              = " in mlpromote.yaml, then mlpromote build and mlpromote verify"
	NothingVerified     = "no report of a trusted verifier counts"
	ReadinessSubjectAll = "release"
)

// requirementRow is all that is known of one requirement of promotions. A new requirement is a row here, its name, and the
// function that judges it.
type requirementRow struct {
	name  string
	words string // what it requires, for readers
	// usual requirements are required by a protected environment that lists none. environments.yaml can list a usual and a
	// listed one under require. Every policy of a protected environment has the common ones.
	usual, listed, common bool
	// follows reports whether a promotion has to meet it without being listed; nil: it does not.
	follows func(judging) bool
	// skippable requirements can be skipped by break-glass: proofs that are missing, and rules of time and consent. What is
	// known against a release never is, nor is who built it and its native code.
	skippable bool
	// objects is true of a requirement that is only unmet because something speaks against the release.
	objects bool
	role    evidence.Role // whose evidence meets it; empty: it needs none of its own
	awaits  awaits
	// command meets it, of %[1]s, the release, in %[2]s, the destination. noCommand is the reason where there is none.
	command, noCommand string
	// applicable reports whether the command meets an unmet requirement; nil: it does.
	applicable func(Requirement) bool
	hint       string   // for a refusal by %[1]s, the destination; empty: none
	items      []string // of the checklist, that it is about
	judge      judge
}

// awaits is what further evidence can do about a requirement that is unmet.
type awaits struct {
	role  evidence.Role
	first bool // only the first piece of evidence can meet it: what is there is the answer
}

const (
	commandToVerify = "mlpromote verify %[1]s"
	commandToAccept = "mlpromote approve %[1]s --env %[2]s --accept LINE --comment TEXT"
	hintToAccept    = "if it is meant, an approver accepts each line: mlpromote approve REF --env %[1]s --accept LINE --comment TEXT --keys DIR. " +
		"The key of a builder does not count; for another one: " +
		"mlpromote key generate --role approver --keys DIR, and mlpromote trust add DIR/approver.pub --role approver --env %[1]s"
	needsBuild   = "only another build meets it, and that makes another release"
	staysAgainst = "what speaks against the release stays"
	needsRules   = "environments.yaml has to change, or the release"
)

// requirementRows lists all requirements. Those that follow from something are judged in this order.
func requirementRows() []requirementRow {
	return []requirementRow{
		{name: RequireSignature, words: "a builder signed the release and every engine", usual: true, role: evidence.RoleBuilder,
			awaits: awaits{role: evidence.RoleBuilder}, noCommand: needsBuild, items: []string{ReadySignature}, judge: releaseAndEngines(judgeSignature)},
		{name: RequireProvenance, words: "every engine has provenance from a builder", usual: true, role: evidence.RoleBuilder,
			awaits: awaits{role: evidence.RoleBuilder}, noCommand: needsBuild, items: []string{ReadyProvenance}, judge: eachEngine(judgeProvenance)},
		{name: RequireParity, words: "every engine has a pass from a verifier", usual: true, skippable: true, role: evidence.RoleVerifier,
			awaits: awaits{role: evidence.RoleVerifier}, command: commandToVerify, items: []string{ReadyParity}, judge: eachEngine(judgeParity)},
		{name: RequireRecordedCases, words: "the passes ran recorded cases, not generated ones", listed: true, skippable: true, role: evidence.RoleVerifier,
			awaits: awaits{role: evidence.RoleVerifier}, command: commandToVerify, items: []string{ReadyParity, ReadyRecorded}, judge: eachEngine(judgeRecordedCases)},
		{name: RequireSeparateRoles, words: "no key of a builder is also that of a verifier or approver", listed: true,
			noCommand: "each role needs a key of its own", judge: eachEngine(judgeSeparation)},
		{name: requireAccuracy, words: "every engine shows the accuracy that `accuracy` asks for", follows: func(j judging) bool { return j.policy.Accuracy != nil }, skippable: true,
			noCommand: needsBuild, items: []string{ReadyAccuracy}, judge: eachEngine(judgeAccuracy)},
		{name: requireCeilings, words: "no limit is looser than `ceilings` allow", follows: func(j judging) bool { return len(j.policy.Ceilings) > 0 }, skippable: true,
			noCommand: needsBuild, judge: eachEngine(judgeCeilings)},
		{name: RequireNoLooser, words: "no limit is looser than in the release that is replaced", listed: true, skippable: true,
			command: commandToAccept, hint: hintToAccept, judge: theRelease(judgeNoLooser)},
		{name: RequireCompatibleInterface, words: "what calls the release that is replaced can call this one", listed: true, skippable: true,
			command: commandToAccept, hint: hintToAccept, judge: theRelease(judgeCompatibleInterface)},
		{name: RequireReproducibleBytes, words: "every engine was built twice with equal bytes", listed: true, skippable: true, role: evidence.RoleBuilder,
			awaits: awaits{role: evidence.RoleBuilder, first: true}, noCommand: needsBuild, items: []string{ReadyReproducible}, judge: eachEngine(judgeReproducible(evidence.ReproducibleBytes))},
		{name: RequireReproducibleSemantic, words: "every engine was built twice, and both compute the same", listed: true, skippable: true, role: evidence.RoleBuilder,
			awaits: awaits{role: evidence.RoleBuilder, first: true}, noCommand: needsBuild, items: []string{ReadyReproducible}, judge: eachEngine(judgeReproducible(evidence.ReproducibleSemantic))},
		{name: requireQuarantine, words: "neither the release nor an engine is in quarantine", objects: true,
			noCommand: staysAgainst, items: []string{ReadyUnrestricted}, judge: releaseAndEngines(judgeQuarantine)},
		{name: requireOperators, words: "the environment allows every operator library by digest", common: true,
			noCommand: needsRules, items: []string{ReadySafe}, judge: judge{perEngine, judgeOperators}},
		{name: requireUnrestricted, words: "no restriction concerns an engine", common: true, objects: true,
			noCommand: staysAgainst, items: []string{ReadyUnrestricted}, judge: judge{perEngine, judgeRestrictions}},
		{name: requireCIJob, words: "the job of `ci-job` built the release and every engine", follows: func(j judging) bool { return j.policy.CIJob != nil }, role: evidence.RoleBuilder,
			awaits: awaits{role: evidence.RoleBuilder, first: true}, noCommand: needsBuild, items: []string{ReadyProvenance}, judge: releaseAndEngines(judgeCIJob)},
		{name: requireReports, words: "passes are as fresh and of as many verifiers, cases and repeated runs as `reports` asks", follows: func(j judging) bool { return !j.policy.Reports.IsZero() }, skippable: true,
			awaits: awaits{role: evidence.RoleVerifier}, command: commandToVerify, items: []string{ReadyParity}, judge: eachEngine(judgeReports)},
		{name: RequireServed, words: "every engine passed through the model server that `served` names, too", follows: func(j judging) bool { return !j.policy.Served.IsZero() }, skippable: true,
			role: evidence.RoleVerifier, awaits: awaits{role: evidence.RoleVerifier}, command: "mlpromote verify %[1]s --toolchains DIR --through SERVER",
			items: []string{ReadyParity}, judge: eachEngine(judgeServed)},
		{name: RequireCoverage, words: "every node type of `coverage` gets an engine that was shown on it", follows: func(j judging) bool { return !j.policy.Coverage.IsZero() }, skippable: true,
			awaits: awaits{role: evidence.RoleVerifier}, command: commandToVerify, applicable: func(req Requirement) bool { return req.Unshown },
			items: []string{ReadyCoverage}, judge: judge{perNodeType, judgeCoverage}},
		{name: RequireApprovals, words: "as many people approved as `approvals` asks", follows: func(j judging) bool { return j.policy.Approvals.Count > 0 }, skippable: true, role: evidence.RoleApprover,
			awaits: awaits{role: evidence.RoleApprover}, command: "mlpromote approve %[1]s --env %[2]s --comment TEXT", items: []string{ReadyApprovals}, judge: theRelease(judgeApprovals)},
		{name: requireNoFreeze, words: "no window of `freeze` is in force", follows: func(j judging) bool { return len(j.policy.Freeze) > 0 }, skippable: true,
			noCommand: "it ends by itself", judge: theRelease(judgeFreeze)},
		{name: RequireNoDowngrade, words: "the release is not older than the one that it replaces, unless that is asked for", follows: replacesNewer,
			noCommand: "who promotes asks for it: --downgrade",
			hint: "mlpromote rollback MODEL --env %[1]s --to-version VERSION --reason TEXT goes back to a release that was there, " +
				"and holds it; mlpromote promote --downgrade promotes an older version that is meant", judge: theRelease(judgeDowngrade)},
		{name: requireBreakGlass, words: "two approvers agreed to skip what is unmet; only with `promote --break-glass`", follows: skipsUnmet,
			noCommand: "two approvers act, with the command that the refusal names", judge: theRelease(judgeBreakGlass)},
		{name: requireNoFailure, words: "no failing report of a verifier stands against an engine; only with `promote --break-glass`, since `parity` has it",
			follows: skipped, objects: true,
			noCommand: staysAgainst, judge: eachEngine(judgeFailures)},
	}
}

// requirementNamed returns the row of a requirement. One that is unknown is met by nothing.
func requirementNamed(name string) requirementRow {
	for _, row := range requirementRows() {
		if row.name == name {
			return row
		}
	}
	return requirementRow{name: name, judge: eachEngine(func(judging, *Requirement, artifact.Engine) {})}
}

// requirementsWith lists the names of the rows that have something.
func requirementsWith(has func(requirementRow) bool) []string {
	var names []string
	for _, row := range requirementRows() {
		if has(row) {
			names = append(names, row.name)
		}
	}
	return names
}

// DefaultRequire returns the requirements of a protected environment that does not list any.
func DefaultRequire() []string {
	return requirementsWith(func(row requirementRow) bool { return row.usual })
}

// Requirements lists all requirements, including those that environments.yaml cannot name.
func Requirements() []string {
	return requirementsWith(func(requirementRow) bool { return true })
}

// namedRequirements lists those that environments.yaml can name.
func namedRequirements() []string {
	return requirementsWith(func(row requirementRow) bool { return row.usual || row.listed })
}

// Skippable lists the requirements that break-glass can skip.
func Skippable() []string {
	return requirementsWith(func(row requirementRow) bool { return row.skippable })
}

// RequirementsAbout lists the requirements that are about an item of the checklist.
func RequirementsAbout(item string) []string {
	return requirementsWith(func(row requirementRow) bool { return slices.Contains(row.items, item) })
}

// RequirementRole returns the role whose evidence meets a requirement of an environment. ok is
// false for a requirement that needs no evidence of its own.
func RequirementRole(requirement string) (role evidence.Role, ok bool) {
	role = requirementNamed(requirement).role
	return role, role != ""
}

// RequirementHints lists what to do about a refusal by an environment, once each, beyond what the requirements say.
func RequirementHints(environment string, unmet []Requirement) []string {
	var hints []string
	for _, req := range unmet {
		row := requirementNamed(req.Name)
		if hint := fmt.Sprintf(row.hint, environment); row.hint != "" && !slices.Contains(hints, hint) {
			hints = append(hints, hint)
		}
	}
	return hints
}

// Objects reports whether the requirement is unmet because of something that speaks against the release,
// rather than because a proof is missing.
func (req Requirement) Objects() bool {
	return !req.Met && (req.Refused || requirementNamed(req.Name).objects)
}

// State is how a decision stands to the requirement, in a word: met, unmet, refused or skipped.
func (req Requirement) State() string {
	switch {
	case req.Met:
		return "met"
	case req.Skipped:
		return "skipped"
	case req.Objects():
		return "refused"
	}
	return "unmet"
}

// AwaitedRole returns the role whose further evidence can meet an unmet requirement. ok is false for one that no further
// evidence meets, such as a requirement on what a release is made of.
func (req Requirement) AwaitedRole() (role evidence.Role, ok bool) {
	if req.Objects() {
		return "", false
	}
	awaits := requirementNamed(req.Name).awaits
	return awaits.role, awaits.role != "" && (!awaits.first || len(req.Evidence) == 0)
}

// Command is the command that meets an unmet requirement. It is empty if there is none, or several, or if something speaks against
// the release. ref names the release, and to the destination.
func (req Requirement) Command(ref, to string) string {
	row := requirementNamed(req.Name)
	if req.Met || req.Skipped || req.Objects() || row.command == "" || row.applicable != nil && !row.applicable(req) {
		return ""
	}
	return fmt.Sprintf(row.command, ref, to)
}

// validateSkips checks that requirements can be skipped, and that each is listed once.
func validateSkips(what string, skips []string) error {
	for i, name := range skips {
		if !slices.Contains(Skippable(), name) {
			return registry.Errorf(registry.CodeInvalid, "%s: requirement %.40q cannot be skipped: want some of %s", what, name, strings.Join(Skippable(), ", "))
		}
		if slices.Contains(skips[:i], name) {
			return registry.Errorf(registry.CodeInvalid, "%s: requirement %q: listed twice", what, name)
		}
	}
	return nil
}

// decide adds a requirement to the decision.
func (j judging) decide(row requirementRow) {
	for _, req := range row.judge.named(row.name, j) {
		j.decided.Requirements = append(j.decided.Requirements, req)
		j.decided.Until = registry.Earlier(j.decided.Until, req.until)
	}
}
