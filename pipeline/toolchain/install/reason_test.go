package install

import (
	"strings"
	"testing"
)

// What pip 24 and npm 10 print where they fail, shortened in the middle, becomes a sentence.
func TestReasons(t *testing.T) {
	t.Parallel()
	const retry = "WARNING: Retrying (Retry(total=4, connect=None, read=None, redirect=None, status=None)) after connection broken by "
	const none = "ERROR: Could not find a version that satisfies the requirement ml-dtypes==0.6.0 (from versions: none)\nERROR: No matching distribution found for ml-dtypes==0.6.0\n"
	const lacks = "Could not find a version that satisfies the requirement ml-dtypes==0.6.0 (from versions: none)"
	for name, c := range map[string]struct {
		reason       func(string) string
		output, want string
	}{
		"refused": {pipReason,
			"Looking in indexes: http://127.0.0.1:9/simple\n" +
				strings.Repeat(retry+"'NewConnectionError('<pip._vendor.urllib3.connection.HTTPConnection object at 0x7f58>: Failed to establish a new connection: [Errno 111] Connection refused')': /simple/ml-dtypes/\n", 5) + none,
			"no connection to the package index: [Errno 111] Connection refused; " + lacks},
		"timeout": {pipReason,
			retry + "'ConnectTimeoutError(<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f>, 'Connection to index.invalid timed out. (connect timeout=15)')': /simple/numpy/\n" + none,
			"no connection to the package index: Connection to index.invalid timed out; " + lacks},
		"certificate": {pipReason,
			retry + "'SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)'))': /simple/numpy/\n" + none,
			"no connection to the package index: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006; " + lacks},
		"not there": {pipReason, "Looking in links: /wheels\n" + none, lacks},
		"hashes": {pipReason,
			"Collecting numpy==2.4.6\nERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n    numpy==2.4.6 from http://x:\n        Expected sha256 aa\n             Got        bb\nnotice\n",
			"THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.; numpy==2.4.6 from http://x:; Expected sha256 aa; Got        bb"},
		"something else": {pipReason, "Segmentation fault\n", "Segmentation fault"},
		"npm": {npmReason,
			"npm error code ECONNREFUSED\nnpm error syscall connect\nnpm error FetchError: request to http://127.0.0.1:9/x failed, reason: connect ECONNREFUSED 127.0.0.1:9\nnpm error     at ClientRequest.<anonymous> (/usr/lib/x.js:130:14) {\nnpm error   code: 'ECONNREFUSED',\nnpm error   port: 9,\nnpm error }\nnpm error\nnpm error If you are behind a proxy, please make sure\n",
			"FetchError: request to http://127.0.0.1:9/x failed, reason: connect ECONNREFUSED 127.0.0.1:9"},
		"npm 9": {npmReason, "npm ERR! code EINTEGRITY\nnpm ERR! sha512-aa integrity checksum failed\n", "sha512-aa integrity checksum failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.reason(c.output); got != c.want {
				t.Errorf("the reason is\n%q, want\n%q", got, c.want)
			}
		})
	}
	if got := pipReason("ERROR: " + strings.Repeat("x", 5000)); len(got) != maxReason {
		t.Errorf("a long reason has %d bytes, want %d", len(got), maxReason)
	}
}
