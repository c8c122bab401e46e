package environments

import (
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// ciJob is the CI job that must have built what is promoted to an environment.
type ciJob struct {
	Issuer string    `yaml:"issuer,required"`
	Claims jobClaims `yaml:"claims,required"`
}

func (j *ciJob) rule() *policy.CIJob {
	if j == nil {
		return nil
	}
	return &policy.CIJob{Issuer: j.Issuer, Claims: j.Claims}
}

// jobClaims are values of claims by name.
type jobClaims map[string]string

// DecodeYAML reads the mapping. A number is its text, as tokens have it.
func (c *jobClaims) DecodeYAML(n *strictyaml.Node) {
	if n.Kind() != strictyaml.Mapping {
		n.Problemf("claims is %s: want a mapping such as {repository_id: \"1296269\"}", n.Kind())
		return
	}
	*c = make(jobClaims)
	for _, e := range n.Entries() {
		if e.Value.Kind() != strictyaml.Scalar {
			e.Value.Problemf("claim %s is %s: want one value", e.Key, e.Value.Kind())
			continue
		}
		(*c)[e.Key] = e.Value.Text()
	}
}
