package evidence

import (
	"net/url"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Origin says where a spec came from and which CI job built it. It is part of the provenance of an engine. The
// builder states it: no key but the builder's stands behind it.
type Origin struct {
	Git GitOrigin `json:"git"`
	CI  *CIOrigin `json:"ci,omitempty"` // absent where nothing said that a CI job builds
	// Source is the address and the server that the model was fetched from; empty for a file. Provenance has it at the source, in the list of
	// dependencies.
	Source string `json:"source,omitempty"`
}

// GitOrigin is the state of the git repository that the folder of the spec is in.
type GitOrigin struct {
	// Repository is the URL of the remote "origin", without user, password and query. Empty if there is no
	// such remote, or if it is a folder.
	Repository string `json:"repository,omitempty"`
	Commit     string `json:"commit,omitempty"` // hex, of HEAD
	Ref        string `json:"ref,omitempty"`    // "refs/heads/main"; empty for a detached HEAD
	Spec       string `json:"spec,omitempty"`   // path of the spec within the repository
	// State says whether the files are those of the commit. Empty: not known.
	State GitState `json:"state,omitempty"`
	// Changed are files that differ from the commit, and files that the spec uses and the commit does not
	// have, as many as its reader names; ChangedCount counts all.
	Changed      []string `json:"changed,omitempty"`
	ChangedCount int      `json:"changedCount,omitempty"`
	// Missing says why nothing is known; empty otherwise.
	Missing string `json:"missing,omitempty"`
}

// GitState compares files with a commit. The zero GitState says nothing.
type GitState string

// The states of a working tree.
const (
	GitClean GitState = "clean" // no tracked file is changed, and the commit has every file that the spec uses
	GitDirty GitState = "dirty"
)

// CIOrigin says which CI job built. Claims are from a token that the CI's issuer signed. Claimed are what variables
// of the job say, or a token whose signature could not be verified: any step of the job can set them.
type CIOrigin struct {
	Issuer     string            `json:"issuer,omitempty"` // that signed Claims
	Claims     map[string]string `json:"claims,omitempty"`
	Claimed    map[string]string `json:"claimed,omitempty"`
	Unverified string            `json:"unverified,omitempty"` // why there are no Claims
}

// String describes an origin in one line.
func (o Origin) String() string {
	text := "not known: " + o.Git.Missing
	if o.Git.Commit != "" {
		text = "commit " + o.Git.Commit
		if o.Git.Repository != "" {
			text += " of " + o.Git.Repository
		}
		switch o.Git.State {
		case GitClean:
		case GitDirty:
			text += " with " + registry.Count(o.Git.ChangedCount, "changed file")
			if named := o.Git.Changed[:min(3, len(o.Git.Changed))]; len(named) > 0 {
				text += ": " + strings.Join(named, ", ")
				if o.Git.ChangedCount > len(named) {
					text += ", ..."
				}
			}
		default:
			text += ", changed or not"
		}
	}
	switch {
	case o.CI == nil:
	case o.CI.Run() != "":
		text += "; " + o.CI.Run()
	case o.CI.Issuer != "":
		text += "; a job of " + o.CI.Issuer
	case o.CI.ClaimedRun() != "":
		text += "; claims to be the CI job " + o.CI.ClaimedRun() + " (not verified)"
	default:
		text += "; claims to be a CI job (not verified)"
	}
	if o.Source != "" {
		text += "; the model is " + o.Source
	}
	return registry.PlainText(text)
}

// Origin reads from a statement of provenance where the spec came from. It is nil where the statement does not
// say it.
func (s Statement) Origin() *Origin {
	var predicate struct {
		BuildDefinition struct {
			InternalParameters struct {
				Origin *Origin `json:"origin"`
			} `json:"internalParameters"`
			ResolvedDependencies []dependency `json:"resolvedDependencies"`
		} `json:"buildDefinition"`
	}
	if s.PredicateType != PredicateProvenance || registry.DecodeSigned(s.Predicate, &predicate) != nil {
		return nil
	}
	origin := predicate.BuildDefinition.InternalParameters.Origin
	if origin != nil {
		origin.Source = fetchedFrom(predicate.BuildDefinition.ResolvedDependencies)
	}
	return origin
}

// dependency is the part of a resource descriptor that names a server.
type dependency struct {
	Name        string         `json:"name"`
	URI         string         `json:"uri"`
	Annotations map[string]any `json:"annotations"`
}

// fetchedFrom describes the server that a source was fetched from; empty for a file.
func fetchedFrom(all []dependency) string {
	for _, d := range all {
		if d.Name != "source" || d.URI == "" {
			continue
		}
		if server, ok := d.Annotations["server"].(string); ok {
			return registry.PlainText(d.URI + " of " + server)
		}
		return registry.PlainText(d.URI)
	}
	return ""
}

// Run is the URL of the CI run that the verified claims name; empty where they name none. Sources:
// https://docs.github.com/en/actions/reference/security/oidc and
// https://docs.gitlab.com/ci/secrets/id_token_authentication/.
func (c *CIOrigin) Run() string {
	if c == nil || c.Issuer == "" {
		return ""
	}
	has := c.Claims
	switch server := gitHubServer(c.Issuer); {
	case server != "" && has["repository"] != "" && has["run_id"] != "":
		text := server + "/" + has["repository"] + "/actions/runs/" + has["run_id"]
		if has["run_attempt"] != "" {
			text += "/attempts/" + has["run_attempt"]
		}
		return RunURL(text)
	case has["project_path"] != "" && has["job_id"] != "":
		return RunURL(c.Issuer + "/" + has["project_path"] + "/-/jobs/" + has["job_id"])
	}
	return ""
}

// ClaimedRun is the URL of the CI run that the job claims to be: nothing confirms it.
func (c *CIOrigin) ClaimedRun() string {
	if c == nil {
		return ""
	}
	return RunURL(c.Claimed[ClaimRun])
}

// ClaimRun is the name under which [CIOrigin.Claimed] has the URL of the run, as variables of the job say it.
const ClaimRun = "run_url"

// maxRunURL is how long the URL of a run may be.
const maxRunURL = 512 // it is part of a reason, which has an end too

// RunURL is text if it can be the URL of a run that people follow: empty for anything else.
func RunURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxRunURL || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil ||
		registry.PlainText(text) != text || strings.ContainsAny(text, " <>\"'`|\\()[]") {
		return ""
	}
	return text
}

// gitHubServer is the server whose jobs an issuer signs tokens for: github.com, which lets an enterprise have an issuer of its own
// below the common one, an instance with data residency, or a GitHub Enterprise Server. Empty for any other issuer.
func gitHubServer(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil || u.Scheme != "https" {
		return ""
	}
	subdomain, ok := strings.CutPrefix(u.Host, "token.actions.")
	switch {
	case u.Host == "token.actions.githubusercontent.com":
		return "https://github.com"
	case ok && u.Path == "" && strings.HasSuffix(subdomain, ".ghe.com"):
		return "https://" + subdomain
	case u.Path == "/_services/token":
		return "https://" + u.Host
	}
	return ""
}
