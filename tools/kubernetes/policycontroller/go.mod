module mlpromote.dev/mlpromote/tools/kubernetes/policycontroller

go 1.26.0

tool github.com/sigstore/policy-controller/cmd/webhook

require github.com/sigstore/policy-controller v0.15.1
