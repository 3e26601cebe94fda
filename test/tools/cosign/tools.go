//go:build tools

package tools

import _ "github.com/sigstore/cosign/v3/cmd/cosign"
