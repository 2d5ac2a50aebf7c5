# Evaluates a Homebrew formula without Homebrew, as for one platform, and prints as JSON what it would do.
# Usage: ruby formula.rb FORMULA macos|linux arm|intel [head]
require "json"
require "pathname"

PLATFORM = ARGV[1..2]
HEAD = ARGV[3] == "head"
DONE = { "commands" => [], "installs" => Hash.new { |all, place| all[place] = [] } }

class Place
  def initialize(name)
    @name = name
  end

  def install(*paths)
    DONE["installs"][@name].concat(paths.flatten)
  end

  def to_s
    "/#{@name}"
  end
end

class Formula
  class << self
    attr_reader :facts, :tests

    def inherited(formula)
      super
      formula.instance_variable_set(:@facts, { "depends_on" => [] })
    end

    def desc(text) = @facts["desc"] = text
    def homepage(text) = @facts["homepage"] = text
    def version(text) = @facts["version"] = text
    def license(text) = @facts["license"] = text
    def sha256(text) = @facts["sha256"] = text
    def url(text, **more) = @facts["url"] = [text, more]
    def depends_on(what) = @facts["depends_on"] << what
    def head(&block) = HEAD && instance_eval(&block)
    def on_macos(&block) = !HEAD && PLATFORM.include?("macos") && instance_eval(&block)
    def on_linux(&block) = !HEAD && PLATFORM.include?("linux") && instance_eval(&block)
    def on_arm(&block) = PLATFORM.include?("arm") && instance_eval(&block)
    def on_intel(&block) = PLATFORM.include?("intel") && instance_eval(&block)
    def test(&block) = @tests = block
  end

  Build = Struct.new(:head?)
  Version = Struct.new(:text, :head?) do
    def to_s = text
  end

  def build = Build.new(HEAD)
  def version = Version.new(HEAD ? "HEAD-abc" : self.class.facts["version"], HEAD)
  def bin = Place.new("bin")
  def man1 = Place.new("man1")
  def bash_completion = Place.new("bash_completion")
  def zsh_completion = Place.new("zsh_completion")
  def fish_completion = Place.new("fish_completion")
  def doc = Place.new("doc")
  def system(*words) = DONE["commands"] << words
  def shell_output(line) = (DONE["asked"] ||= []).push(line) && (HEAD ? "0.0.0+abc" : self.class.facts["version"])
  def assert_match(expected, got) = got.include?(expected) || raise("#{got} lacks #{expected}")
end

load File.expand_path(ARGV[0])
formula = ClusterE2e.new
formula.install
formula.instance_eval(&ClusterE2e.tests)
puts JSON.generate(DONE.merge(ClusterE2e.facts))
