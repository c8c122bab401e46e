package environments

import (
	"maps"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/trust"
)

// identity is a signer as the file describes it, by an OIDC issuer.
type identity struct {
	Issuer  string `yaml:"issuer,required"`
	Subject string `yaml:"subject"`
	Claims  claims `yaml:"claims"`
}

// claims are those that an entry may require. The owner of some claims can change, such as the
// name of a repository. An entry can combine such a claim with a permanent one.
type claims struct {
	RepositoryID      string `yaml:"repository_id"`       // GitHub
	RepositoryOwnerID string `yaml:"repository_owner_id"` // GitHub
	Repository        string `yaml:"repository"`          // GitHub
	JobWorkflowRef    string `yaml:"job_workflow_ref"`    // GitHub
	RunnerEnvironment string `yaml:"runner_environment"`  // GitHub, GitLab
	ProjectID         string `yaml:"project_id"`          // GitLab
	NamespaceID       string `yaml:"namespace_id"`        // GitLab
	ProjectPath       string `yaml:"project_path"`        // GitLab
	CIConfigRefURI    string `yaml:"ci_config_ref_uri"`   // GitLab
	Environment       string `yaml:"environment"`
	Ref               string `yaml:"ref"`
	Email             string `yaml:"email"` // Google
}

// texts returns the required claims by name.
func (c claims) texts() map[string]string {
	all := map[string]string{
		"repository_id": c.RepositoryID, "repository_owner_id": c.RepositoryOwnerID, "repository": c.Repository,
		"job_workflow_ref": c.JobWorkflowRef, "runner_environment": c.RunnerEnvironment,
		"project_id": c.ProjectID, "namespace_id": c.NamespaceID, "project_path": c.ProjectPath, "ci_config_ref_uri": c.CIConfigRefURI,
		"environment": c.Environment, "ref": c.Ref, "email": c.Email,
	}
	maps.DeleteFunc(all, func(_, text string) bool { return text == "" })
	if len(all) == 0 {
		return nil
	}
	return all
}

// identity reads and checks an identity.
func (c checker) identity(written identity) *trust.Identity {
	read := &trust.Identity{Issuer: written.Issuer, Subject: written.Subject, Claims: written.Claims.texts()}
	if !registry.IsIssuerURL(written.Issuer) {
		c.at("identity", "issuer").Problemf("issuer %q: want https://HOST[/PATH], as its tokens have it in iss", written.Issuer)
	}
	if read.Subject == "" && len(read.Claims) == 0 {
		c.at("identity").Problemf("the identity covers every user of the issuer: want a subject or claims")
	}
	for _, e := range c.at("identity", "claims").Entries() {
		if e.Value.Text() == "" {
			e.Value.Problemf("claim %s is empty: want the text that it must have", e.Key)
		}
	}
	for name, text := range read.Claims {
		c.exact(text, "identity", "claims", name)
	}
	c.exactSubject(written.Issuer, read.Subject)
	shared, _ := registry.FindSharedIssuer(written.Issuer)
	owners := shared.PermanentClaims // a name can be given to another owner, who could then sign
	if len(owners) > 0 && !slices.ContainsFunc(owners, func(claim string) bool { return read.Claims[claim] != "" }) {
		c.at("identity").Problemf("%s issues tokens to everybody, and names there can change owner: want one of %s among the claims",
			written.Issuer, strings.Join(owners, ", "))
	}
	return read
}

// exact refuses patterns: identities are compared character by character.
func (c checker) exact(text string, path ...any) {
	if isPattern(text) {
		c.at(path...).Problemf("%q: %s", text, wantExact)
	}
}

// exactSubject refuses a pattern for the subject, and names the claims that cover several jobs.
func (c checker) exactSubject(issuer, subject string) {
	claims := registry.ClaimsInPlaceOf(issuer, subject)
	if !isPattern(subject) || len(claims) == 0 {
		c.exact(subject, "identity", "subject")
		return
	}
	c.at("identity", "subject").Problemf("%q: %s; to cover several jobs, name some of these claims in place of the subject: %s",
		subject, wantExact, strings.Join(claims, ", "))
}

const wantExact = "want the exact text: patterns have no meaning in an identity"

func isPattern(text string) bool { return strings.ContainsAny(text, "*?") }
