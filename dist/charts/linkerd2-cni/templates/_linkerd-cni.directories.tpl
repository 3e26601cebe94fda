{{- define "linkerd-cni.directories" -}}
binDir: {{ .Values.destCNIBinDir | default "" | default (default "/opt/cni/bin" (get (dict "gke" "/home/kubernetes/bin" "k3s" "/var/lib/rancher/k3s/data/cni" "microk8s" "/var/snap/microk8s/current/opt/cni/bin" "openshift" "/var/lib/cni/bin") (default "" .Values.platform))) | quote }}
netDir: {{ .Values.destCNINetDir | default "" | default (default "/etc/cni/net.d" (get (dict "k3s" "/var/lib/rancher/k3s/agent/etc/cni/net.d" "microk8s" "/var/snap/microk8s/current/args/cni-network" "openshift" "/etc/kubernetes/cni/net.d") (default "" .Values.platform))) | quote }}
{{- end }}
