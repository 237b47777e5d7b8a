# For a tap: `brew update-python-resources mcp-gateway` writes the resources, from the same index as pip.
class McpGateway < Formula
  include Language::Python::Virtualenv

  desc "One MCP server in front of many, so that models see what tools return"
  homepage "https://github.com/mcp-multimodal-gateway/mcp-multimodal-gateway"
  url "https://github.com/mcp-multimodal-gateway/mcp-multimodal-gateway.git", tag: "v0.1.0"
  license "MIT"

  depends_on "rust" => :build
  depends_on "python@3.13"

  def install
    virtualenv_install_with_resources
    generate_completions_from_executable(bin/"mcp-gateway", shell_parameter_format: :typer)
  end

  service do
    run [opt_bin/"mcp-gateway", "serve", "--http"]
    keep_alive crashed: true
    log_path var/"log/mcp-gateway.log"
    error_log_path var/"log/mcp-gateway.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/mcp-gateway --version")
    system bin/"mcp-gateway", "config", "check", "--help"
  end
end
