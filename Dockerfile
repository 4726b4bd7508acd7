# The curator as a service. Build: docker build -t hubbub .    How to run it: docs/deploy.md and compose.yaml.
#
# To pin the base as well, name it by its digest: --build-arg BASE=python@sha256:…
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS build
# where packages come from, if not from where pip looks by itself: --build-arg PIP_INDEX_URL=…
ARG PIP_INDEX_URL
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
RUN python -m venv /opt/hubbub
# First what seldom changes: everything pinned, each file checked against its hash, nothing compiled from source.
COPY requirements/run.lock requirements/run.lock
RUN /opt/hubbub/bin/pip install --require-hashes --only-binary :all: -r requirements/run.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
# What only a build needs does not go along (pip last, since it does the work). The root will be read-only, so byte code is
# made now; a hash, not a time, says that it belongs to its source.
RUN /opt/hubbub/bin/pip install --no-deps --no-build-isolation --no-index . \
 && /opt/hubbub/bin/pip uninstall -y -q hatchling editables trove-classifiers setuptools pip \
 && /opt/hubbub/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /opt/hubbub/lib
COPY packaging/health.py /opt/hubbub/health.py

FROM ${BASE}
# A user of its own, by number, so that "must not run as root" can be checked from outside; it owns only its state.
RUN groupadd --gid 10001 hubbub \
 && useradd --uid 10001 --gid 10001 --home-dir /var/lib/hubbub --no-create-home --shell /usr/sbin/nologin hubbub \
 && install -d -o 10001 -g 10001 -m 0700 /var/lib/hubbub /var/lib/hubbub-anchor \
 && install -d -m 0755 /data
COPY --from=build /opt/hubbub /opt/hubbub
# below the last one: the ledger's anchor, where hubbub.yaml names no place for it
ENV PATH=/opt/hubbub/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 XDG_STATE_HOME=/var/lib/hubbub-anchor
USER 10001:10001
WORKDIR /var/lib/hubbub
# state: hubbub.yaml and what is kept beside the ledger; anchor: on another disk, or at least in another backup
VOLUME ["/var/lib/hubbub", "/var/lib/hubbub-anchor"]
EXPOSE 8321
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 CMD ["python", "/opt/hubbub/health.py"]
ENTRYPOINT ["hubbub"]
CMD ["serve", "--config", "/var/lib/hubbub/hubbub.yaml", "--host", "0.0.0.0"]
