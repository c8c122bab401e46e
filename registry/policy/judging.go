package policy

import (
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// judging is what requirements are judged by: a policy, a release with its claims, and the decision so far.
type judging struct {
	policy  Policy
	release artifact.Release
	claims  []evidence.Claim
	counted evidence.Counted // those of the claims that count
	decided *Decision
}

// judge judges a requirement. all returns it once for each of its subjects, without a name.
type judge struct {
	per subjects
	all func(judging) []Requirement
}

// subjects says what a requirement is judged of.
type subjects string

const (
	perRelease  subjects = "release"
	perEngine   subjects = "engine"
	perBoth     subjects = "release and engine"
	perNodeType subjects = "node type"
)

// theRelease judges the release as a whole.
func theRelease(one func(judging, *Requirement)) judge {
	return judge{perRelease, func(j judging) []Requirement {
		req := Requirement{Subject: subjectRelease}
		one(j, &req)
		return []Requirement{req}
	}}
}

// eachEngine judges each engine by itself. A release without engines does not meet it.
func eachEngine(one func(judging, *Requirement, artifact.Engine)) judge {
	return judge{perEngine, func(j judging) []Requirement {
		if len(j.release.Engines) == 0 {
			return []Requirement{{Subject: subjectRelease, Detail: "the release has no engine"}}
		}
		var all []Requirement
		for _, e := range j.release.Engines {
			req := Requirement{Subject: e.Label()}
			one(j, &req, e)
			all = append(all, req)
		}
		return all
	}}
}

// releaseAndEngines judges the release, and then each engine.
func releaseAndEngines(one func(judging, *Requirement, artifact.Subject)) judge {
	return judge{perBoth, func(j judging) []Requirement {
		var all []Requirement
		for _, s := range j.release.Judged() {
			req := Requirement{Subject: s.Name}
			one(j, &req, s)
			all = append(all, req)
		}
		return all
	}}
}

// named returns the requirement under its name, once for each of its subjects.
func (by judge) named(name string, j judging) []Requirement {
	all := by.all(j)
	for i := range all {
		all[i].Name = name
	}
	return all
}
