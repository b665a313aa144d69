"""Results as GitHub and GitLab take them: summaries, annotations, code scanning, code quality, badges."""
