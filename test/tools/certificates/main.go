// Command certificates makes chains of certificates of every kind, and says what Go's verifier makes of each.
//
//	certificates SEED COUNT
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"math/rand"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// A Case is a chain as a server sends it, and what a client trusts and asks for.
type Case struct {
	Name  string `json:"name"`
	Roots string `json:"roots"`
	Chain string `json:"chain"`
	// Trusted says whether Go's verifier accepts it; Why, what it says else.
	Trusted bool   `json:"trusted"`
	Why     string `json:"why"`
	// Unreadable says that Go's parser reads one of the server's certificates not at all.
	Unreadable bool `json:"unreadable"`
	// What was done to make it special.
	Made string `json:"made"`
}

type issued struct {
	der     []byte
	cert    *x509.Certificate
	key     crypto.Signer
	subject pkix.Name
}

type maker struct {
	*rand.Rand
	keys []crypto.Signer
	made []string
	now  time.Time
}

func (m *maker) chance(percent int) bool { return m.Intn(100) < percent }

func (m *maker) note(format string, args ...any) {
	m.made = append(m.made, fmt.Sprintf(format, args...))
}

func pick[T any](m *maker, from ...T) T { return from[m.Intn(len(from))] }

var domains = []string{"example.com", "api.example.com", "a.api.example.com", "other.test", "default.svc", "kubernetes.default.svc", "kubernetes", "com", "xexample.com", "foo-example.com"}
var networks = []string{"10.0.0.0/8", "10.96.0.0/16", "10.96.0.1/32", "192.168.0.0/16", "0.0.0.0/0", "fd00::/8", "fd00::/64", "::/0", "::1/128", "2001:db8::/32"}
var hosts = []string{"api.example.com", "a.api.example.com", "API.Example.Com", "example.com", "kubernetes", "kubernetes.default.svc", "x.other.test", "xexample.com", "foo-example.com", "under_score.example.com"}
var addresses = []string{"10.96.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "fd00::1", "::1", "2001:db8::5"}
var wildcards = []string{"*.example.com", "*.api.example.com", "*.default.svc", "*.com", "*"}
var emails = []string{"root@example.com", "root@api.example.com", "Root@Example.Com", "\"a b\"@other.test", "x@localhost"}
var uris = []string{"spiffe://example.com/ns/a", "https://api.example.com:6443/x", "https://user@a.api.example.com/", "https://other.test?x", "urn:a:b", "https://10.0.0.1/", "https://[::1]:80/"}
var policies = []string{"2.5.29.32.0", "1.2.3.1", "1.2.3.2", "1.2.3.3"}

func raw(class, tag int, isCompound bool, bytes []byte) asn1.RawValue {
	return asn1.RawValue{Class: class, Tag: tag, IsCompound: isCompound, Bytes: bytes}
}

func marshal(value any) []byte {
	der, err := asn1.Marshal(value)
	if err != nil {
		panic(err)
	}
	return der
}

func general(tag int, bytes []byte) asn1.RawValue {
	return raw(asn1.ClassContextSpecific, tag, false, bytes)
}

func oid(text string) asn1.ObjectIdentifier {
	var id asn1.ObjectIdentifier
	for _, part := range strings.Split(text, ".") {
		number, _ := strconv.Atoi(part)
		id = append(id, number)
	}
	return id
}

func addressBytes(text string) []byte {
	address := net.ParseIP(text)
	if v4 := address.To4(); v4 != nil && !strings.Contains(text, ":") {
		return v4
	}
	return address.To16()
}

func networkBytes(text string) []byte {
	_, network, err := net.ParseCIDR(text)
	if err != nil {
		panic(err)
	}
	return append(append([]byte{}, network.IP...), network.Mask...)
}

// A base of a subtree of names.
func (m *maker) base(kind int) asn1.RawValue {
	switch kind {
	case 1:
		return general(1, []byte(pick(m, "example.com", ".example.com", "root@example.com", "other.test", "Root@EXAMPLE.com", "\"a b\"@other.test")))
	case 6:
		return general(6, []byte(pick(m, "example.com", ".example.com", "other.test", "api.example.com")))
	case 7:
		return general(7, networkBytes(pick(m, networks...)))
	case 4:
		return raw(asn1.ClassContextSpecific, 4, true, marshal(pkix.Name{CommonName: "x"}.ToRDNSequence()))
	default:
		domain := pick(m, domains...)
		if m.chance(20) {
			domain = "." + domain
		}
		if m.chance(15) {
			domain = strings.ToUpper(domain)
		}
		if m.chance(3) {
			domain = pick(m, "", "bad..name", "trailing.", "a b", ".")
		}
		return general(2, []byte(domain))
	}
}

func (m *maker) subtrees(tag, count int, all bool) []byte {
	var bytes []byte
	add := func(base asn1.RawValue) { bytes = append(bytes, marshal(struct{ Base asn1.RawValue }{base})...) }
	for range count {
		kind := pick(m, 2, 2, 2, 2, 7, 7, 1, 6)
		if m.chance(2) {
			kind = 4
		}
		add(m.base(kind))
	}
	if all {
		// What most names are within.
		for _, domain := range []string{"example.com", "default.svc", "kubernetes", "other.test"} {
			add(general(2, []byte(domain)))
		}
		for _, network := range []string{"10.0.0.0/8", "fd00::/8"} {
			add(general(7, networkBytes(network)))
		}
	}
	if bytes == nil {
		return nil
	}
	return marshal(raw(asn1.ClassContextSpecific, tag, true, bytes))
}

func (m *maker) nameConstraints() pkix.Extension {
	var value []byte
	for value == nil && !m.chance(1) {
		if m.chance(60) {
			value = append(value, m.subtrees(0, m.Intn(3), m.chance(60))...)
		}
		if m.chance(50) {
			value = append(value, m.subtrees(1, m.Intn(3), false)...)
		}
	}
	critical := m.chance(50)
	m.note("name constraints, critical %t", critical)
	return pkix.Extension{Id: oid("2.5.29.30"), Critical: critical, Value: marshal(raw(0, 16, true, value))}
}

func (m *maker) policyExtensions(isAuthority bool) []pkix.Extension {
	var all []pkix.Extension
	critical := m.chance(30)
	if m.chance(88) {
		var list []byte
		seen := map[string]bool{}
		for range 1 + m.Intn(3) {
			policy := pick(m, policies...)
			if !seen[policy] {
				list = append(list, marshal(struct{ Policy asn1.ObjectIdentifier }{oid(policy)})...)
			}
			seen[policy] = true
		}
		all = append(all, pkix.Extension{Id: oid("2.5.29.32"), Critical: critical, Value: marshal(raw(0, 16, true, list))})
	}
	if isAuthority && m.chance(50) || m.chance(5) {
		var value []byte
		if m.chance(80) {
			value = append(value, marshal(general(0, []byte{byte(m.Intn(3))}))...)
		}
		if m.chance(40) {
			value = append(value, marshal(general(1, []byte{byte(m.Intn(3))}))...)
		}
		all = append(all, pkix.Extension{Id: oid("2.5.29.36"), Critical: m.chance(70), Value: marshal(raw(0, 16, true, value))})
		m.note("policy constraints")
	}
	if isAuthority && m.chance(25) {
		all = append(all, pkix.Extension{Id: oid("2.5.29.54"), Critical: m.chance(70), Value: marshal(m.Intn(3))})
		m.note("inhibitAnyPolicy")
	}
	if isAuthority && m.chance(25) {
		var list []byte
		for range 1 + m.Intn(2) {
			list = append(list, marshal(struct{ From, To asn1.ObjectIdentifier }{oid(pick(m, policies[1:]...)), oid(pick(m, policies[1:]...))})...)
			if m.chance(3) {
				list = append(list, marshal(struct{ From, To asn1.ObjectIdentifier }{oid(policies[0]), oid(policies[1])})...)
			}
		}
		all = append(all, pkix.Extension{Id: oid("2.5.29.33"), Critical: m.chance(60), Value: marshal(raw(0, 16, true, list))})
		m.note("policy mappings")
	}
	return all
}

func (m *maker) names(wanted string) pkix.Extension {
	var list []byte
	add := func(name asn1.RawValue) { list = append(list, marshal(name)...) }
	host := func(name string) {
		if net.ParseIP(name) != nil {
			add(general(7, addressBytes(name)))
		} else {
			add(general(2, []byte(name)))
		}
	}
	if m.chance(90) {
		host(wanted)
	} else if net.ParseIP(wanted) != nil && m.chance(30) {
		add(general(2, []byte(wanted)))
		m.note("an address as a DNS name")
	}
	for range m.Intn(3) {
		switch m.Intn(10) {
		case 0, 1, 2:
			host(pick(m, hosts...))
		case 3, 4:
			host(pick(m, addresses...))
		case 5, 6:
			host(pick(m, wildcards...))
			m.note("a wildcard")
		case 7:
			add(general(1, []byte(pick(m, emails...))))
			m.note("an e-mail address")
		case 8:
			add(general(6, []byte(pick(m, uris...))))
			m.note("a URI")
		default:
			add(general(8, []byte{0x2a, 3}))
		}
	}
	if m.chance(1) {
		add(general(7, []byte{1, 2, 3}))
		m.note("a malformed address")
	}
	if m.chance(1) {
		add(general(2, []byte(pick(m, "bad..name", "trailing.example.com.", "sp ace.example.com"))))
		m.note("an odd DNS name")
	}
	return pkix.Extension{Id: oid("2.5.29.17"), Critical: m.chance(10), Value: marshal(raw(0, 16, true, list))}
}

// Defects are rare, so that about half of all chains have none.
func (m *maker) issue(subject string, by *issued, isAuthority, hasPolicies bool, wanted string, depth int) *issued {
	key := pick(m, m.keys...)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(m.Int63()),
		Subject:               pkix.Name{CommonName: subject},
		NotBefore:             m.now.Add(-time.Hour),
		NotAfter:              m.now.Add(24 * time.Hour),
		BasicConstraintsValid: true,
		IsCA:                  isAuthority,
		MaxPathLen:            -1,
	}
	if m.chance(1) {
		m.note("%s expired", subject)
		template.NotAfter = m.now.Add(-time.Minute)
	} else if m.chance(1) {
		m.note("%s of tomorrow", subject)
		template.NotBefore = m.now.Add(time.Hour)
	}
	if isAuthority {
		template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
		if m.chance(10) {
			template.KeyUsage = 0
		} else if m.chance(2) {
			m.note("%s may not sign certificates", subject)
			template.KeyUsage = x509.KeyUsageDigitalSignature
		}
		if m.chance(15) {
			template.MaxPathLen = m.Intn(4)
			template.MaxPathLenZero = true
			m.note("%s allows a path of %d", subject, template.MaxPathLen)
		}
		if m.chance(2) {
			m.note("%s is no authority", subject)
			template.IsCA, template.MaxPathLen, template.MaxPathLenZero = false, 0, false
		} else if m.chance(1) {
			m.note("%s has no basic constraints", subject)
			template.BasicConstraintsValid = false
		}
		if m.chance(12) {
			template.ExtKeyUsage = pick(m, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
				[]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth})
			m.note("%s has purposes", subject)
		} else if m.chance(2) {
			template.UnknownExtKeyUsage = []asn1.ObjectIdentifier{oid("1.2.3.4")}
			m.note("%s has an unknown purpose", subject)
		}
		if m.chance(30) {
			template.ExtraExtensions = append(template.ExtraExtensions, m.nameConstraints())
		}
		if m.chance(4) {
			template.ExtraExtensions = append(template.ExtraExtensions, m.names(pick(m, hosts...)))
			m.note("%s has names", subject)
		}
	} else {
		template.KeyUsage = x509.KeyUsageDigitalSignature
		template.ExtKeyUsage = pick(m, nil, nil, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth})
		if m.chance(3) {
			template.ExtKeyUsage = pick(m, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, []x509.ExtKeyUsage{x509.ExtKeyUsageAny})
		}
		if !m.chance(1) {
			template.ExtraExtensions = append(template.ExtraExtensions, m.names(wanted))
		}
		if m.chance(1) {
			template.ExtraExtensions = append(template.ExtraExtensions, m.nameConstraints())
		}
	}
	if hasPolicies {
		template.ExtraExtensions = append(template.ExtraExtensions, m.policyExtensions(isAuthority)...)
	}
	if m.chance(6) {
		critical := m.chance(25)
		m.note("%s has an unknown extension, critical %t", subject, critical)
		template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: oid("1.2.3.4.5"), Critical: critical, Value: []byte{5, 0}})
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(crand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		panic(err)
	}
	// What issues does not check what it issues by.
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		cert = &x509.Certificate{Subject: template.Subject, RawSubject: marshal(template.Subject.ToRDNSequence()), PublicKey: key.Public()}
	}
	return &issued{der: der, cert: cert, key: key, subject: template.Subject}
}

func encode(certs []*issued) string {
	var text strings.Builder
	for _, each := range certs {
		pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: each.der})
	}
	return text.String()
}

func (m *maker) make() Case {
	m.made = nil
	wanted := pick(m, pick(m, hosts...), pick(m, hosts...), pick(m, addresses...))
	hasPolicies := m.chance(20)
	var path []*issued
	var extra, roots []*issued
	root := m.issue("root", nil, true, hasPolicies, "", 0)
	roots = append(roots, root)
	by := root
	for depth := range m.Intn(4) {
		subject := fmt.Sprintf("ca %d", depth)
		next := m.issue(subject, by, true, hasPolicies, "", depth+1)
		path = append([]*issued{next}, path...)
		if m.chance(6) {
			m.note("another %s", subject)
			other := m.issue(subject, by, true, hasPolicies, "", depth+1)
			extra = append(extra, other)
			if m.chance(50) {
				next, path[0] = other, other
				extra[len(extra)-1] = next
			}
		}
		by = next
	}
	leaf := m.issue("api", by, false, hasPolicies, wanted, 9)
	chain := append(append([]*issued{}, path...), extra...)
	if m.chance(4) && len(chain) > 0 {
		m.note("an intermediate is missing")
		at := m.Intn(len(chain))
		chain = append(chain[:at], chain[at+1:]...)
	}
	if m.chance(15) {
		m.Shuffle(len(chain), func(i, j int) { chain[i], chain[j] = chain[j], chain[i] })
	}
	if m.chance(8) {
		chain = append(chain, root)
	}
	switch {
	case m.chance(3):
		m.note("the leaf is trusted")
		roots = pick(m, []*issued{leaf}, []*issued{leaf, root})
	case m.chance(5) && len(path) > 0:
		m.note("an intermediate is trusted")
		roots = []*issued{pick(m, path...)}
	case m.chance(4):
		m.note("another root is trusted, too")
		roots = append([]*issued{m.issue("root", nil, true, hasPolicies, "", 0)}, roots...)
	case m.chance(3):
		m.note("another root is trusted")
		roots = []*issued{m.issue(pick(m, "root", "other"), nil, true, false, "", 0)}
	}
	name := wanted
	if m.chance(4) {
		name = pick(m, "other.example.com", "10.9.9.9", "Kubernetes", "api.example.com.", "a.b.example.com", "::ffff:10.96.0.1")
	}
	made := Case{Name: name, Roots: encode(roots), Chain: encode(append([]*issued{leaf}, chain...)), Made: strings.Join(m.made, "; ")}
	if err := verify(made, m.now); err != nil {
		_, isUnreadable := err.(unreadable)
		made.Why, made.Unreadable = err.Error(), isUnreadable
	} else {
		made.Trusted = true
	}
	return made
}

type unreadable struct{ error }

// As crypto/tls does for a client.
func verify(given Case, now time.Time) error {
	options := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), DNSName: given.Name, CurrentTime: now}
	options.Roots.AppendCertsFromPEM([]byte(given.Roots))
	var leaf *x509.Certificate
	for rest := []byte(given.Chain); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return unreadable{err}
		}
		if leaf == nil {
			leaf = cert
		} else {
			options.Intermediates.AddCert(cert)
		}
	}
	_, err := leaf.Verify(options)
	return err
}

func main() {
	seed, _ := strconv.ParseInt(os.Args[1], 10, 64)
	count, _ := strconv.Atoi(os.Args[2])
	m := &maker{Rand: rand.New(rand.NewSource(seed)), now: time.Now()}
	for range 6 {
		key, _ := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
		m.keys = append(m.keys, key)
	}
	for range 2 {
		key, _ := ecdsa.GenerateKey(elliptic.P384(), crand.Reader)
		m.keys = append(m.keys, key)
	}
	for range 2 {
		key, _ := rsa.GenerateKey(crand.Reader, 2048)
		m.keys = append(m.keys, key)
	}
	var cases []Case
	for range count {
		cases = append(cases, m.make())
	}
	json.NewEncoder(os.Stdout).Encode(cases)
}
