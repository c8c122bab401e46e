package mlflow

import (
	"context"
	"net/url"
	"path"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// version is a version of a registered model in answers of the API.
type version struct {
	Version string `json:"version"`
	Run     string `json:"run_id"`
	Status  string `json:"status"`
}

// placed is a model with the place of its artifacts on the server.
type placed struct {
	ref  Ref    // with a version in place of an alias
	root string // path for the artifact proxy
	run  string
}

// place asks for the version behind an alias and for the place of the artifacts.
func place(ctx context.Context, c *Client, r Ref) (placed, error) {
	if r.Run != "" {
		return placeOfRun(ctx, c, r)
	}
	var answer struct {
		Version version `json:"model_version"`
	}
	endpoint, query := "model-versions/get", url.Values{"name": {r.Name}, "version": {r.Version}}
	if r.Alias != "" {
		endpoint, query = "registered-models/alias", url.Values{"name": {r.Name}, "alias": {r.Alias}}
	}
	if err := c.get(ctx, api+endpoint, query, &answer); err != nil {
		return placed{}, err
	}
	found := answer.Version
	if !versionPattern.MatchString(found.Version) || r.Version != "" && found.Version != r.Version {
		return placed{}, registry.Errorf(registry.CodeInvalid, "MLflow server %s: it answers with version %.40q for %s", c.base.Host, found.Version, r)
	}
	if found.Status != "" && found.Status != "READY" {
		return placed{}, registry.Errorf(registry.CodeInvalid, "version %s of %s is in the state %.40q, want READY", found.Version, r.Name, found.Status)
	}
	if found.Run != "" && !runPattern.MatchString(found.Run) {
		return placed{}, registry.Errorf(registry.CodeInvalid, "MLflow server %s: %.80q is no ID of a run", c.base.Host, found.Run)
	}
	var where struct {
		URI string `json:"artifact_uri"`
	}
	if err := c.get(ctx, api+"model-versions/get-download-uri", url.Values{"name": {r.Name}, "version": {found.Version}}, &where); err != nil {
		return placed{}, err
	}
	root, err := proxied(c, where.URI)
	return placed{Ref{Name: r.Name, Version: found.Version}, root, found.Run}, err
}

// placeOfRun finds a model among the artifacts of a run, and among the models that a run logged, which MLflow 3 keeps elsewhere.
func placeOfRun(ctx context.Context, c *Client, r Ref) (placed, error) {
	var answer struct {
		Run struct {
			Info struct {
				Artifacts string `json:"artifact_uri"`
			} `json:"info"`
			Outputs struct {
				Models []struct {
					ID string `json:"model_id"`
				} `json:"model_outputs"`
			} `json:"outputs"`
		} `json:"run"`
	}
	if err := c.get(ctx, api+"runs/get", url.Values{"run_id": {r.Run}}, &answer); err != nil {
		return placed{}, err
	}
	logged := answer.Run.Outputs.Models
	if len(logged) > maxFiles {
		return placed{}, registry.Errorf(registry.CodeInvalid, "run %s has %d models: want at most %d", r.Run, len(logged), maxFiles)
	}
	for _, m := range logged {
		if !runPattern.MatchString(m.ID) {
			return placed{}, registry.Errorf(registry.CodeInvalid, "MLflow server %s: %.80q is no ID of a model", c.base.Host, m.ID)
		}
		var one struct {
			Model struct {
				Info struct {
					Name      string `json:"name"`
					Artifacts string `json:"artifact_uri"`
				} `json:"info"`
			} `json:"model"`
		}
		if err := c.get(ctx, api+"logged-models/"+m.ID, nil, &one); err != nil {
			return placed{}, err
		}
		if one.Model.Info.Name == r.Path {
			root, err := proxied(c, one.Model.Info.Artifacts)
			return placed{r, root, r.Run}, err
		}
	}
	root, err := proxied(c, answer.Run.Info.Artifacts)
	return placed{r, path.Join(root, r.Path), r.Run}, err
}

// proxied is the path of artifacts that the server hands out itself. Errors: CodeInvalid for artifacts that are elsewhere.
func proxied(c *Client, uri string) (string, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return "", registry.Errorf(registry.CodeInvalid, "MLflow server %s: the artifacts are at an address that cannot be read", c.base.Host)
	}
	root := strings.Trim(u.Path, "/")
	switch {
	case u.Scheme == "mlflow-artifacts" && (u.Host == "" || u.Host == c.base.Host):
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host == c.base.Host && strings.Contains(u.Path, artifactsEndpoint+"/"):
		_, root, _ = strings.Cut(root, artifactsEndpoint+"/")
	default:
		return "", registry.WithHint(registry.Errorf(registry.CodeInvalid, "MLflow server %s keeps the artifacts at %.20s://%s, and only artifacts that it hands out itself are read", c.base.Host, u.Scheme, registry.PlainText(u.Host)),
			"start the server with --serve-artifacts and --artifacts-destination, or download the model with mlflow artifacts download and hand in its file")
	}
	if !localPath(root) {
		return "", registry.Errorf(registry.CodeInvalid, "MLflow server %s: the path %.80q of artifacts is none", c.base.Host, root)
	}
	return root, nil
}
