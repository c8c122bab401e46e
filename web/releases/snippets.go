package releases

import (
	"net/http"
	"path"
	"regexp"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/toolchains"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/web/page"
)

// snippets are what a reader would copy to use an engine, with the address of this service.
func snippets(config *page.Config, r *http.Request, in Read, e artifact.Engine, files []artifact.File) []page.Command {
	address := page.AddressOf(config.URL, r)
	scheme, host, _ := strings.Cut(address, "://")
	environment, err := config.Registry.Environments(r.Context())
	if err == nil {
		if at, err := environment.Find(in.environment); err == nil && at.External() {
			host, scheme = at.Registry, "https"
		}
	}
	ref := host + "/" + registry.Ref{Environment: in.environment, Model: in.Model, Digest: e.Digest}.String()
	name := path.Base(in.Model)
	all := []page.Command{
		{What: "Pull the engine that fits a machine, and check it", Text: "mlpromote pull " + in.Model + " --env " + in.environment + " --registry " + address + " -o engine"},
		{What: "Check a pulled folder", Text: "mlpromote trust engine"},
		{What: "Pull the files of this engine with ORAS, unchecked", Text: "oras pull " + plainHTTP(scheme, "--plain-http ") + ref},
	}
	all = append(all, cosign(in, e, scheme, ref, environment.Trust)...)
	all = append(all, initContainer(in, e, address))
	if e.Image.Digest != "" {
		image := host + "/" + registry.Ref{Environment: in.environment, Model: in.Model, Digest: e.Image.Digest}.String()
		all = append(all, page.Command{
			What: "Mount its image form as an image volume (Kubernetes from 1.35): the container finds the files in /engine",
			Text: "containers:\n  - name: server\n    volumeMounts:\n      - {name: model, mountPath: /engine, subPath: models, readOnly: true}\n" +
				"volumes:\n  - name: model\n    image:\n      reference: " + image,
		}, page.Command{What: "Serve it with KServe, from 0.20 on, which mounts its image form", Text: "storageUri: oci+native://" + image})
	}
	known, _ := toolchains.Find(e.Toolchain.Name)
	if !known.Triton && e.Toolchain.Name != "tensorrt" { // whose engines others build
		return all
	}
	if file := loaded(files); file != "" {
		all = append(all, page.Command{
			What: "Serve it with Triton: a model repository of the pulled folder",
			Text: "mkdir -p models/" + name + "\nmlpromote pull " + in.Model + " --env " + in.environment + " --registry " + address + " -o models/" + name + "/1\n" +
				"printf '%s\\n' 'name: \"" + name + "\"' 'backend: \"" + e.Toolchain.Name + "\"' 'default_model_filename: \"" + file + "\"' > models/" + name + "/config.pbtxt\n" +
				"tritonserver --model-repository=models",
		})
	}
	return all
}

// initContainer pulls the engine in a pod, with every container runtime. Its container has no runtime for engines, so that the one of the
// server is named.
func initContainer(in Read, e artifact.Engine, address string) page.Command {
	serves := "NAME:VERSION"
	if t := e.Toolchain; plainFile.MatchString(t.Name) && plainFile.MatchString(t.Version) {
		serves = t.Name + ":" + t.Version
	}
	return page.Command{
		What: "Load it in a pod, with every container runtime: the server mounts the volume engine too, and finds the files in /engine/model",
		Text: "initContainers:\n  - name: engine\n    image: IMAGE-WITH-MLPROMOTE-NODE\n    command: [/mlpromote-node, pull, " + in.Model +
			"]\n    args: [--env=" + in.environment + ", \"--registry=" + address + "\", \"--runtime=" + serves + "\", --out=/engine/model, --trust=/trust/trust.yaml]\n    volumeMounts:\n" +
			"      - {name: engine, mountPath: /engine}\n      - {name: trust, mountPath: /trust, readOnly: true}",
	}
}

// plainHTTP is a flag for clients of registries without TLS.
func plainHTTP(scheme, flag string) string {
	if scheme == "http" {
		return flag
	}
	return ""
}

// plainFile matches paths that stay one word in a shell and in a configuration. Others come from whoever made the engine.
var plainFile = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/+-]*$`)

// loaded is the only file that the runtime loads; empty if there are several, none is known, or its path is not plain.
func loaded(files []artifact.File) string {
	found := ""
	for _, f := range files {
		if f.Kind != artifact.FileEngine || strings.HasSuffix(f.Path, ".json") {
			continue
		}
		if found != "" {
			return ""
		}
		found = f.Path
	}
	if !plainFile.MatchString(found) {
		return ""
	}
	return found
}

// cosign are the commands that verify the signature of the builder and the report of a verifier. They name the signers that
// the evidence has.
func cosign(in Read, e artifact.Engine, scheme, ref string, trust []trust.TrustEntry) []page.Command {
	var all []page.Command
	for _, what := range []struct{ predicate, verb, text string }{
		{evidence.PredicateSign, "cosign verify", "Verify the builder's signature with cosign"},
		{evidence.PredicateParity, "cosign verify-attestation --type " + evidence.PredicateParity, "Verify a verifier's report with cosign"},
	} {
		for _, c := range in.counted {
			if c.Subject == e.Digest && c.Statement.PredicateType == what.predicate {
				if flags := signedBy(c, trust); flags != "" {
					all = append(all, page.Command{What: what.text, Text: what.verb + " " + flags + plainHTTP(scheme, "--allow-http-registry ") + ref})
				}
				break
			}
		}
	}
	return all
}

// signedBy are the flags by which cosign knows the signer of a claim; empty where it cannot. A key needs no log; a
// certificate has one.
func signedBy(c evidence.Claim, trust []trust.TrustEntry) string {
	for _, t := range trust {
		if t.Identity != nil && len(c.Keys) > 0 && t.String() == c.Keys[0] {
			if t.Identity.Subject == "" {
				return "" // cosign knows no other claims
			}
			subject := "--certificate-identity '" + registry.PlainText(strings.ReplaceAll(t.Identity.Subject, "'", "")) + "' "
			return subject + "--certificate-oidc-issuer '" + registry.PlainText(strings.ReplaceAll(t.Identity.Issuer, "'", "")) + "' "
		}
	}
	return "--key " + signer(c) + " --insecure-ignore-tlog "
}
