{{- define "linkerd-cni.stanza" -}}
name: linkerd-cni
capabilities:
  io.kubernetes.cri.pod-annotations: true
kubernetes:
  kubeconfig: __KUBECONFIG_FILEPATH__
linkerd:
  inbound-ports-to-ignore:
    - {{ .Values.proxyAdminPort | default 4191 | int | quote }}
    - {{ .Values.proxyControlPort | default 4190 | int | quote }}
    {{- range $range := regexSplit "[ \\t\\r\\n]*,[ \\t\\r\\n]*" (trim (toString (ternary "" .Values.ignoreInboundPorts (kindIs "invalid" .Values.ignoreInboundPorts)))) -1 | compact }}
    {{- if not (and (regexMatch "^(0|[1-9][0-9]{0,4})(-(0|[1-9][0-9]{0,4}))?$" $range) (le (int (first (splitList "-" $range))) (int (last (splitList "-" $range)))) (le (int (last (splitList "-" $range))) 65535)) }}
      {{- fail (printf "ignoreInboundPorts: \"%v\" has %v, which is not a port or a range low-high between 0 and 65535" (toString (ternary "" $.Values.ignoreInboundPorts (kindIs "invalid" $.Values.ignoreInboundPorts))) $range) }}
    {{- end }}
    - {{ $range | quote }}
    {{- end }}
  incoming-proxy-port: {{ .Values.inboundProxyPort | default 4143 | int }}
  {{- if .Values.iptablesMode | default "auto" | regexMatch "^(auto|native)$" }}
  iptables-mode: nft
  {{- else }}
  iptables-mode: {{ .Values.iptablesMode | default "auto" | quote }}
  {{- end }}
  ipv6: {{ not (ne (toString .Values.disableIPv6) "false") }}
  {{- if regexSplit "[ \\t\\r\\n]*,[ \\t\\r\\n]*" (trim (toString (ternary "" .Values.ignoreOutboundPorts (kindIs "invalid" .Values.ignoreOutboundPorts)))) -1 | compact }}
  outbound-ports-to-ignore:
    {{- range $range := regexSplit "[ \\t\\r\\n]*,[ \\t\\r\\n]*" (trim (toString (ternary "" .Values.ignoreOutboundPorts (kindIs "invalid" .Values.ignoreOutboundPorts)))) -1 | compact }}
    {{- if not (and (regexMatch "^(0|[1-9][0-9]{0,4})(-(0|[1-9][0-9]{0,4}))?$" $range) (le (int (first (splitList "-" $range))) (int (last (splitList "-" $range)))) (le (int (last (splitList "-" $range))) 65535)) }}
      {{- fail (printf "ignoreOutboundPorts: \"%v\" has %v, which is not a port or a range low-high between 0 and 65535" (toString (ternary "" $.Values.ignoreOutboundPorts (kindIs "invalid" $.Values.ignoreOutboundPorts))) $range) }}
    {{- end }}
    - {{ $range | quote }}
    {{- else }}
    []
    {{- end }}
  {{- end }}
  outgoing-proxy-port: {{ .Values.outboundProxyPort | default 4140 | int }}
  ports-to-redirect:
    {{- range $range := regexSplit "[ \\t\\r\\n]*,[ \\t\\r\\n]*" (trim (toString (ternary "" .Values.portsToRedirect (kindIs "invalid" .Values.portsToRedirect)))) -1 | compact }}
    {{- if not (and (regexMatch "^(0|[1-9][0-9]{0,4})$" $range) (le (int (first (splitList "-" $range))) (int (last (splitList "-" $range)))) (le (int (last (splitList "-" $range))) 65535)) }}
      {{- fail (printf "portsToRedirect: \"%v\" has %v, which is not a port between 0 and 65535" (toString (ternary "" $.Values.portsToRedirect (kindIs "invalid" $.Values.portsToRedirect))) $range) }}
    {{- end }}
    - {{ $range | int }}
    {{- else }}
    []
    {{- end }}
  {{- if ge (int (ternary -1 .Values.proxyGID (kindIs "invalid" .Values.proxyGID))) 0 }}
  proxy-gid: {{ .Values.proxyGID | kindIs "invalid" | ternary -1 .Values.proxyGID | int }}
  {{- end }}
  proxy-uid: {{ .Values.proxyUID | default 2102 | int }}
  {{- if .Values.iptablesMode | default "auto" | regexMatch "^(auto|native)$" }}
  redirect-mode: {{ .Values.iptablesMode | default "auto" | quote }}
  {{- end }}
  simulate: false
  use-wait-flag: {{ eq (toString .Values.useWaitFlag) "true" }}
log_level: {{ .Values.logLevel | default "info" | quote }}
own-pods:
  namespace: {{ .Release.Namespace | quote }}
  daemonset: linkerd-cni
pod-lookup: {{ .Values.podLookup | default "auto" | quote }}
{{- if not (eq (default "/run/linkerd-cni" .Values.runDir) "/run/linkerd-cni") }}
run-dir: {{ .Values.runDir | default "/run/linkerd-cni" | quote }}
{{- end }}
strict-status: {{ eq (toString .Values.strictStatus) "true" }}
type: linkerd-cni
{{- end }}
