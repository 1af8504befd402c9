# Sourced: packages of another Debian suite than the machine's own, unpacked and not installed.
#
# apt works on lists of its own, so the machine's package sources stay as they are. The mirror is
# the one the machine already uses for Debian.

# The first Debian mirror among the machine's package sources.
debian_mirror() {
    apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(CODENAME)' 2>/dev/null |
        awk '$2 == "Debian" && $3 !~ /security/ && !found++ { print $1 }'
}

# suite_open SUITE WORK [ARCHITECTURE]: from here on apt knows SUITE alone, and keeps what it needs in WORK.
suite_open() {
    local suite=$1 work=$2 architecture=${3:-} uri
    uri=$(debian_mirror)
    if [ -z "$uri" ]; then
        apt-get --quiet --quiet update
        uri=$(debian_mirror)
    fi
    [ -n "$uri" ] || { echo "no Debian mirror among the machine's package sources" >&2; return 2; }
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
    cat >"$work/sources.list" <<LIST
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $suite main
LIST
    cat >"$work/apt.conf" <<CONF
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::lists "$work/lists";
Dir::Cache "$work/cache";
Acquire::Languages "none";
APT::Sandbox::User "root";
CONF
    if [ -n "$architecture" ]; then
        echo "APT::Architecture \"$architecture\"; APT::Architectures { \"$architecture\"; };" >>"$work/apt.conf"
    fi
    export APT_CONFIG=$work/apt.conf
    apt-get --quiet --quiet update
}

# suite_unpack WORK PACKAGE…: into WORK/unpacked.
suite_unpack() {
    local work=$1 package
    shift
    for package in "$@"; do
        (cd "$work" && apt-get --quiet --quiet download "$package" &&
            dpkg-deb -x "$package"_*.deb unpacked) || return
    done
}
