package policy

import (
	"fmt"

	"mlpromote.dev/mlpromote/registry/artifact"
)

// replacesNewer reports whether the release is of an older version than the head that it would replace.
func replacesNewer(j judging) bool {
	there := j.policy.Promotion
	return !there.Replay && there.HeadVersion != "" && there.Head != j.release.Digest && artifact.CompareTags(j.release.Tag(), there.HeadVersion) < 0
}

// judgeDowngrade decides about a release that would replace a newer version: only who asks for it gets it. A rollback goes back;
// what replaces a newer version otherwise is mostly a job that comes late.
func judgeDowngrade(j judging, req *Requirement) {
	there := j.policy.Promotion
	req.Met, req.Detail = there.Downgrade, fmt.Sprintf("%s has %s, which is newer", there.Environment, there.HeadVersion)
	if req.Met {
		req.Detail += ": replacing it was asked for"
	}
}
